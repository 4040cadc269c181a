/**
 * The order of test files in a run. A run that has no durations of earlier runs, as in a fresh clone, begins with the
 * largest files. The longest tests are in small files, and a long one that begins last is waited for by all workers: so
 * tests of whole sessions and processes begin before those beside a source file, which take milliseconds.
 */
import { BaseSequencer, type TestSpecification } from 'vitest/node'

export default class WholeSessionsFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const hasDurations = files.some((file) => this.ctx.cache.getTestSpecificationResult(file) !== undefined)
    if (hasDurations) return sorted
    const projects = [...new Set(sorted.map(({ project }) => project.name))]
    return projects.flatMap((name) =>
      putUnitTestsLast(
        sorted.filter(({ project }) => project.name === name),
        ({ moduleId }) => moduleId,
      ),
    )
  }
}

/** Moves the tests that stand beside a source file behind the others, and changes nothing else in the order. */
export function putUnitTestsLast<File>(files: readonly File[], readPath: (file: File) => string): File[] {
  const isUnitTest = (file: File): boolean => /\/packages\/[^/]+\/src\//.test(readPath(file))
  return [...files.filter((file) => !isUnitTest(file)), ...files.filter(isUnitTest)]
}
