// The other parts of book.h of "CUDA by Example".
template <class T> void swap(T& a, T& b) { T t = a; a = b; b = t; }
void* big_random_block(int size) { unsigned char* data = (unsigned char*)malloc(size); for (int i = 0; i < size; ++i) data[i] = rand(); return data; }
int* big_random_block_int(int size) { int* data = (int*)malloc(size * sizeof(int)); for (int i = 0; i < size; ++i) data[i] = rand(); return data; }
