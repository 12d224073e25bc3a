// main() of the course: runs every linked lesson, one after the other.

#include "common/lesson/run/runner.h"

int main(int argc, char** argv) {
  return d2l::LessonMain(argc, argv, d2l::Program::kCourse);
}
