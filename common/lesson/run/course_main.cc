// main() of the course: every lesson that is linked in, one after the other.

#include "common/lesson/run/runner.h"

int main(int argc, char** argv) {
  return d2l::LessonMain(argc, argv, d2l::Program::kCourse);
}
