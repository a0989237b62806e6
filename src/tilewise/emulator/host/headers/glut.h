// OpenGL and GLUT without a window: frames are computed, but not shown; glutMainLoop calls the display function once,
// timers and the idle function a few times, and ends the program as closing its window would.
typedef unsigned int GLenum; typedef unsigned int GLuint; typedef int GLint; typedef int GLsizei; typedef float GLfloat; typedef double GLdouble;
typedef unsigned char GLubyte; typedef char GLchar; typedef unsigned int GLbitfield; typedef unsigned char GLboolean; typedef void GLvoid; typedef float GLclampf;
#define GL_COLOR_BUFFER_BIT 16384
#define GL_DEPTH_BUFFER_BIT 256
#define GL_POINTS 0
#define GL_LINES 1
#define GL_LINE_LOOP 2
#define GL_LINE_STRIP 3
#define GL_TRIANGLES 4
#define GL_TRIANGLE_STRIP 5
#define GL_TRIANGLE_FAN 6
#define GL_QUADS 7
#define GL_POLYGON 9
#define GL_PROJECTION 5889
#define GL_MODELVIEW 5888
#define GL_SMOOTH 7425
#define GL_FLAT 7424
#define GL_LIGHTING 2896
#define GL_LIGHT0 16384
#define GL_LIGHT1 16385
#define GL_POSITION 4611
#define GL_AMBIENT 4608
#define GL_DIFFUSE 4609
#define GL_SPECULAR 4610
#define GL_SHININESS 5633
#define GL_AMBIENT_AND_DIFFUSE 5634
#define GL_FRONT 1028
#define GL_BACK 1029
#define GL_FRONT_AND_BACK 1032
#define GL_FILL 6914
#define GL_LINE 6913
#define GL_DEPTH_TEST 2929
#define GL_COLOR_MATERIAL 2903
#define GL_LIGHT_MODEL_AMBIENT 2899
#define GL_RGB 6407
#define GL_RGBA 6408
#define GL_BGR 32992
#define GL_RGBA8 32856
#define GL_UNSIGNED_BYTE 5121
#define GL_FLOAT 5126
#define GL_TEXTURE_2D 3553
#define GL_TEXTURE_MIN_FILTER 10241
#define GL_TEXTURE_MAG_FILTER 10240
#define GL_TEXTURE_WRAP_S 10242
#define GL_TEXTURE_WRAP_T 10243
#define GL_NEAREST 9728
#define GL_LINEAR 9729
#define GL_REPEAT 10497
#define GL_CLAMP 10496
#define GL_BLEND 3042
#define GL_SRC_ALPHA 770
#define GL_ONE_MINUS_SRC_ALPHA 771
#define GL_LESS 513
#define GL_LEQUAL 515
#define GL_VERTEX_ARRAY 32884
#define GL_COLOR_ARRAY 32886
#define GL_CULL_FACE 2884
#define GL_NORMALIZE 2977
#define GL_TRUE 1
#define GL_FALSE 0
#define GL_NO_ERROR 0
#define GLUT_RGB 0
#define GLUT_RGBA 0
#define GLUT_SINGLE 0
#define GLUT_DOUBLE 2
#define GLUT_DEPTH 16
#define GLUT_ALPHA 8
#define GLUT_LEFT_BUTTON 0
#define GLUT_MIDDLE_BUTTON 1
#define GLUT_RIGHT_BUTTON 2
#define GLUT_DOWN 0
#define GLUT_UP 1
#define GLUT_WINDOW_WIDTH 102
#define GLUT_WINDOW_HEIGHT 103
#define GLUT_ELAPSED_TIME 700
#define GLUT_ACTION_ON_WINDOW_CLOSE 505
#define GLUT_ACTION_GLUTMAINLOOP_RETURNS 1
#define GLUT_ACTION_CONTINUE_EXECUTION 2
#define GLUT_CURSOR_NONE 101
#define GLUT_KEY_UP 101
#define GLUT_KEY_DOWN 103
#define GLUT_KEY_LEFT 100
#define GLUT_KEY_RIGHT 102
#define GLEW_OK 0
int glVertex2f(...) { return 0; } int glVertex2i(...) { return 0; } int glVertex2d(...) { return 0; }
int glVertex3f(...) { return 0; } int glVertex3d(...) { return 0; } int glVertex2fv(...) { return 0; }
int glVertex3fv(...) { return 0; } int glColor3f(...) { return 0; } int glColor3d(...) { return 0; }
int glColor4f(...) { return 0; } int glColor3ub(...) { return 0; } int glColor3fv(...) { return 0; }
int glNormal3f(...) { return 0; } int glEnable(...) { return 0; } int glDisable(...) { return 0; }
int glLightfv(...) { return 0; } int glLightf(...) { return 0; } int glLightModelfv(...) { return 0; }
int glMatrixMode(...) { return 0; } int glMaterialfv(...) { return 0; } int glMaterialf(...) { return 0; }
int glClear(...) { return 0; } int glLoadIdentity(...) { return 0; } int glTranslatef(...) { return 0; }
int glTranslated(...) { return 0; } int glRotatef(...) { return 0; } int glScalef(...) { return 0; }
int glPushMatrix(...) { return 0; } int glPopMatrix(...) { return 0; } int glClearColor(...) { return 0; }
int glClearDepth(...) { return 0; } int glShadeModel(...) { return 0; } int glBegin(...) { return 0; }
int glEnd(...) { return 0; } int glPolygonMode(...) { return 0; } int glPointSize(...) { return 0; }
int glLineWidth(...) { return 0; } int glFrustum(...) { return 0; } int glOrtho(...) { return 0; }
int glColorMaterial(...) { return 0; } int glFlush(...) { return 0; } int glFinish(...) { return 0; }
int glDrawPixels(...) { return 0; } int glTexParameteri(...) { return 0; } int glTexCoord2f(...) { return 0; }
int glTexCoord2d(...) { return 0; } int glTexEnvf(...) { return 0; } int glTexEnvi(...) { return 0; }
int glTexImage2D(...) { return 0; } int glTexSubImage2D(...) { return 0; } int glBindTexture(...) { return 0; }
int glBindBuffer(...) { return 0; } int glBindBufferARB(...) { return 0; } int glBufferData(...) { return 0; }
int glBufferDataARB(...) { return 0; } int glDeleteBuffers(...) { return 0; }
int glDeleteBuffersARB(...) { return 0; } int glDeleteTextures(...) { return 0; } int glViewport(...) { return 0; }
int glVertexPointer(...) { return 0; } int glColorPointer(...) { return 0; }
int glEnableClientState(...) { return 0; } int glDisableClientState(...) { return 0; }
int glDrawArrays(...) { return 0; } int glDepthFunc(...) { return 0; } int glHint(...) { return 0; }
int glRasterPos2i(...) { return 0; } int glRasterPos2f(...) { return 0; } int glPixelZoom(...) { return 0; }
int glPixelStorei(...) { return 0; } int glBlendFunc(...) { return 0; } int glReadPixels(...) { return 0; }
int glReadBuffer(...) { return 0; } int glCullFace(...) { return 0; } int glFrontFace(...) { return 0; }
int gluOrtho2D(...) { return 0; } int gluPerspective(...) { return 0; } int gluLookAt(...) { return 0; }
int glutInit(...) { return 0; } int glutInitDisplayMode(...) { return 0; }
int glutInitWindowPosition(...) { return 0; } int glutSwapBuffers(...) { return 0; }
int glutSolidSphere(...) { return 0; } int glutWireSphere(...) { return 0; } int glutSolidCube(...) { return 0; }
int glutWireCube(...) { return 0; } int glutSolidTeapot(...) { return 0; } int glutBitmapCharacter(...) { return 0; }
int glutStrokeCharacter(...) { return 0; } int glutKeyboardUpFunc(...) { return 0; }
int glutSpecialFunc(...) { return 0; } int glutSpecialUpFunc(...) { return 0; } int glutMotionFunc(...) { return 0; }
int glutPassiveMotionFunc(...) { return 0; } int glutEntryFunc(...) { return 0; }
int glutVisibilityFunc(...) { return 0; } int glutSetCursor(...) { return 0; } int glutWarpPointer(...) { return 0; }
int glutSetWindowTitle(...) { return 0; } int glutSetWindow(...) { return 0; }
int glutDestroyWindow(...) { return 0; } int glutFullScreen(...) { return 0; }
int glutReshapeWindow(...) { return 0; } int glutPositionWindow(...) { return 0; }
int glutSetOption(...) { return 0; } int glutCloseFunc(...) { return 0; } int glutWMCloseFunc(...) { return 0; }
int glutMouseWheelFunc(...) { return 0; } int glutIgnoreKeyRepeat(...) { return 0; }
int glutCreateMenu(...) { return 0; } int glutAddMenuEntry(...) { return 0; } int glutAttachMenu(...) { return 0; }
int glewInit(...) { return 0; }
int __window_width = 300, __window_height = 300, __redisplay = 0, __timer_value = 0;
void (*__display)() = 0; void (*__idle)() = 0; void (*__reshape)(int, int) = 0; void (*__timer)(int) = 0;
void glutDisplayFunc(void (*f)()) { __display = f; }
void glutIdleFunc(void (*f)()) { __idle = f; }
void glutReshapeFunc(void (*f)(int, int)) { __reshape = f; }
void glutTimerFunc(unsigned int ms, void (*f)(int), int value) { __timer = f; __timer_value = value; }
void glutKeyboardFunc(void (*f)(unsigned char, int, int)) {}
void glutMouseFunc(void (*f)(int, int, int, int)) {}
void glutInitWindowSize(int w, int h) { __window_width = w; __window_height = h; }
int glutCreateWindow(const char* title) { return 1; }
int glutGetWindow() { return 1; }
int glutGet(int what) { return what == GLUT_WINDOW_WIDTH ? __window_width : what == GLUT_WINDOW_HEIGHT ? __window_height : 0; }
void glutPostRedisplay() { __redisplay = 1; }
void glGenBuffers(GLsizei n, GLuint* p) { for (int i = 0; i < n; ++i) p[i] = i + 1; }
void glGenBuffersARB(GLsizei n, GLuint* p) { glGenBuffers(n, p); }
void glGenTextures(GLsizei n, GLuint* p) { glGenBuffers(n, p); }
GLenum glGetError() { return 0; }
void glutLeaveMainLoop() { exit(0); }
void glutMainLoop() {
    if (__reshape) __reshape(__window_width, __window_height);
    if (__display) __display();
    for (int i = 0; i < 3; ++i) {
        __redisplay = 0;
        void (*timer)(int) = __timer; __timer = 0;
        if (timer) timer(__timer_value);
        if (__idle) __idle();
        if (__redisplay && __display) __display();
    }
    exit(0);
}
