"""The standard library and others that programs include: containers, threads, Thrust, halves, cuRAND."""
# ruff: noqa: E501 — lines of C++

from __future__ import annotations

import pytest

from tilewise.emulator.host.options import Options
from tilewise.emulator.host.process import run_program

pytestmark = pytest.mark.drawn(2)  # each program is compiled in a process, 0.2 to 2 s


@pytest.fixture
def run(tmp_path):
    def go(text, **options):
        path = tmp_path / "program.cu"
        path.write_text(text)
        return run_program(path, [], Options(**options), capture=True)

    return go


CONTAINERS = r"""#include <iostream>
#include <map>
#include <unordered_map>
#include <set>
#include <tuple>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <atomic>
#include <thread>
#include <string>
#include <sstream>
#include <vector>
using namespace std;
int twice(int x){return 2*x;}
int main(){
  map<string,int> m; m["b"]=2; m["a"]+=5; for(auto& kv: m) cout<<kv.first<<"="<<kv.second<<" "; for (auto& [k,v]: m) cout<<k<<v; cout<<m.size()<<m.count("z")<<endl;
  unordered_map<int,float> u{{1,2.5f},{3,4.f}}; if(u.find(3)!=u.end()) cout<<u[3]<<endl;
  set<int> s; s.insert(3); s.insert(1); s.insert(3); for(int x: s) cout<<x<<' '; cout<<endl;
  function<int(int)> f=twice; cout<<f(4)<<' '; int k=7; function<int(int,int)> g=[k](int a,int b){return a*b+k;}; cout<<g(2,3)<<endl;
  unique_ptr<float[]> p(new float[10]); p[3]=1.5f; cout<<p[3]<<endl; auto q=make_unique<int[]>(5); cout<<q[2]<<endl; auto sp=make_shared<int>(9); auto sp2=sp; cout<<*sp2<<sp.use_count()<<endl;
  auto t=make_tuple(1,2.5,'c'); cout<<get<0>(t)<<get<1>(t)<<get<2>(t)<<endl;
  optional<int> o; cout<<o.has_value()<<o.value_or(3)<<endl; queue<int> qq; qq.push(1); qq.push(2); qq.pop(); cout<<qq.front()<<endl;
  atomic<int> at(0); thread th([&]{ at++; }); th.join(); at.fetch_add(2); cout<<at<<endl;
  stringstream ss("1,2,3"); string tok; while(getline(ss,tok,',')) cout<<tok<<";"; cout<<endl;
}
"""
THRUST = r"""#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/sort.h>
#include <thrust/reduce.h>
#include <thrust/transform.h>
#include <thrust/scan.h>
#include <iostream>
#include <cstdio>
struct sq { __host__ __device__ float operator()(float x) const { return x*x; } };
__global__ void k(float*x,int n){int i=threadIdx.x; if(i<n) x[i]+=1;}
int main(){ thrust::host_vector<float> h(8); for(int i=0;i<8;i++) h[i]=8-i; thrust::device_vector<float> d=h; thrust::sort(d.begin(),d.end()); k<<<1,32>>>(thrust::raw_pointer_cast(d.data()),8);
 cudaDeviceSynchronize(); float s=thrust::reduce(d.begin(),d.end(),0.0f,thrust::plus<float>()); printf("%g\n",s); thrust::device_vector<float> e(8); thrust::transform(d.begin(),d.end(),e.begin(),sq()); thrust::inclusive_scan(e.begin(),e.end(),e.begin()); h=e; std::cout<<h[7]<<" "<<e[0]<<std::endl; int n=thrust::count(d.begin(),d.end(),3.0f); printf("%d\n",n);}
"""
ON_THE_CARD = r"""#include <cuda_fp16.h>
#include <curand_kernel.h>
#include <cstdio>
#include <cstdlib>
__global__ void k(half* a, half* b, half* c, int n){ int i=threadIdx.x; if(i<n) c[i]=__hadd(a[i],b[i])*a[i]; }
__global__ void r(float* o, unsigned long seed){ curandState s; curand_init(seed, threadIdx.x, 0, &s); o[threadIdx.x]=curand_uniform(&s); }
int main(){ half h[4]; for(int i=0;i<4;i++) h[i]=__float2half(i+0.1f); half*a,*c; cudaMalloc(&a,8); cudaMalloc(&c,8); cudaMemcpy(a,h,8,cudaMemcpyHostToDevice); k<<<1,4>>>(a,a,c,4); cudaMemcpy(h,c,8,cudaMemcpyDeviceToHost); for(int i=0;i<4;i++) printf("%f ",__half2float(h[i]));
 float*d; float o[32]; cudaMalloc(&d,128); r<<<1,32>>>(d,7); cudaMemcpy(o,d,128,cudaMemcpyDeviceToHost); printf("%f %f\n",o[0],o[31]); cudaFree(a);cudaFree(c);cudaFree(d);
}
"""


def test_containers_functions_and_threads_print_what_a_compiler_prints(run):
    report = run(CONTAINERS)
    assert report.ended == "exit", report.message
    assert report.output == "a=5 b=2 a5b220\n4\n1 3 \n8 13\n1.5\n0\n92\n12.5c\n03\n2\n3\n1;2;3;\n"
    assert not report.faults


def test_thrust_on_memory_of_the_card(run):
    report = run(THRUST)
    assert report.ended == "exit", report.message
    assert report.output == "44\n284 4\n1\n"
    assert not report.findings, [f.message for f in report.findings]


def test_halves_and_random_numbers_in_kernels(run):
    report = run(ON_THE_CARD)
    assert report.ended == "exit", report.message
    numbers = [float(x) for x in report.output.split()]
    assert numbers[:4] == [0.019989, 2.417969, 8.820312, 19.21875]
    assert 0 < numbers[4] <= 1
    assert 0 < numbers[5] <= 1
    assert not report.faults


def test_vectors_of_the_samples_and_an_average_timer(run):
    report = run(r"""
#include <helper_math.h>
#include <helper_cuda.h>
#include <cstdio>
__global__ void k(float4* v, float* out) { float4 a = v[threadIdx.x]; a += make_float4(1.0f); out[threadIdx.x] = dot(a * 2.0f, a); }
int main() {
  float4 h[2] = {make_float4(0, 1, 2, 3), make_float4(1.0f)}; float o[2]; float4* v; float* d;
  checkCudaErrors(cudaMalloc(&v, sizeof h)); checkCudaErrors(cudaMalloc(&d, sizeof o));
  cudaMemcpy(v, h, sizeof h, cudaMemcpyHostToDevice); k<<<1, 2>>>(v, d); cudaMemcpy(o, d, sizeof o, cudaMemcpyDeviceToHost);
  float3 c = cross(make_float3(1, 0, 0), make_float3(0, 1, 0)); printf("%g %g %g %g\n", o[0], o[1], c.z, length(make_float2(3, 4)));
  cudaFree(v); cudaFree(d);
}""")
    assert report.output == "60 32 1 5\n", report.message
    assert not report.faults


def test_a_missing_command_line_argument_is_reported_as_such(run):
    report = run("#include <cstdlib>\nint main(int argc, char** argv) { return atoi(argv[1]); }")
    assert (report.ended, report.wanted, report.faults) == ("crash", "arguments", [])
    assert "was given none" in report.message


def test_types_of_functions_and_file_level_auto(run):
    report = run(r"""
#include <cstdio>
#include <fstream>
#include <wb.h>
typedef void callback(void* c, int n);
constexpr auto ceildiv = [](int a, int b) { return (a + b - 1) / b; };
constexpr auto WIDTH = 16;
void say(void* c, int n) { printf("%d ", n); }
void use(callback* f) { f(0, 7); }
int main() {
  wbTimerNode_t node = wbTime_start(Compute, "x"); use(say); printf("%d %d ", ceildiv(10, 3), WIDTH);
  char word[6] = {0}; std::ifstream in("program.cu"); in.read(word, 5); printf("%s %ld\n", word + 1, (long)in.gcount());
}""")
    assert report.output == "7 4 16 #inc 5\n", report.message


STRINGS = r"""#include <string>
#include <iostream>
#include <algorithm>
using namespace std;
int main() {
  string s = "hello, world"; s.erase(5, 2); cout << s << endl; s.insert(5, "__"); s.replace(0, 5, "HI"); cout << s << endl;
  s.erase(remove(s.begin(), s.end(), '_'), s.end()); s.erase(s.begin()); cout << s << endl;
  string t(s.begin(), s.end()); t += t; cout << t << t.size() << endl; t.insert(2, 3, '-'); cout << t << endl; t.assign(3, 'z'); cout << t << endl;
  size_t at; cout << stoi("42abc", &at) << at << endl; s.erase(); cout << s.empty() << endl;
  for (size_t n = 11; n > 0; n /= 2) s.insert(s.begin(), (n % 2) + '0');
  s.insert(s.begin() + 1, '-'); cout << s << *s.insert(s.end(), '!') << s.size() << endl;
}
"""


def test_strings_are_changed_in_place(run):
    """The output of g++."""
    assert (
        run(STRINGS).output == "helloworld\nHI__world\nIworld\nIworldIworld12\nIw---orldIworld\nzzz\n422\n1\n1-011!6\n"
    )


def test_distributions_have_their_default_types(run):
    """The numbers are g++'s."""
    ran = run(
        "#include <cstdio>\n#include <random>\n#include <cuda_fp16.h>\n"
        "int main() { std::mt19937 g(114514); std::uniform_real_distribution<> d(-1, 1); std::uniform_int_distribution<> u(0, 9);\n"
        "  std::normal_distribution<> m; double x = d(g); int y = u(g); double z = m(g); __nv_half h = __float2half(1.5f);\n"
        '  printf("%f %d %f %f\\n", x, y, z, __half2float(h)); }\n'
    )
    assert (ran.output, ran.message) == ("0.652671 6 1.418045 1.500000\n", "")


def test_a_variable_is_in_scope_and_uninitialised_in_its_own_initialiser(run):
    ran = run(
        "#include <cstdio>\n#include <cstdlib>\nint main() {\n"
        "  int *data = (int *)malloc(3 * sizeof(*data)), n = 4;\n  data[2] = sizeof(data);\n"
        '  { int n = n + 1; printf("%d %d\\n", data[2], n); }\n  free(data);\n}\n'
    )
    assert ran.output == "8 1\n"
    assert [(f.kind.value, f.place.line) for f in ran.findings if f.place] == [("uninitialised-read", 6)]


def test_the_modes_of_setvbuf_and_terminate(run):
    report = run("""#include <cstdio>
#include <exception>
int main(int argc, char**) { setvbuf(stdout, nullptr, _IONBF, 0); puts("here"); if (argc > 0) std::terminate(); }
""")
    assert (report.output, report.ended, report.status) == ("here\n", "abort", 134), report.message
    assert "without an active exception" in report.errors
