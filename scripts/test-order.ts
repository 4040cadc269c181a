/**
 * The order of test files in a run. A run that has no durations of earlier runs, as in a fresh clone, begins with the
 * largest files. The longest tests are in small files, and a long one that begins last is waited for by all workers: so
 * the files that are known to be long begin first, and tests of whole sessions and processes begin before those beside a
 * source file, which take milliseconds.
 */
import { BaseSequencer, type TestSpecification } from 'vitest/node'

export default class WholeSessionsFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const hasDurations = files.some((file) => this.ctx.cache.getTestSpecificationResult(file) !== undefined)
    if (hasDurations) return sorted
    const projects = [...new Set(sorted.map(({ project }) => project.name))]
    return projects.flatMap((name) =>
      orderByKind(
        sorted.filter(({ project }) => project.name === name),
        ({ moduleId }) => moduleId,
      ),
    )
  }
}

/** Files that take longest, whatever their size. */
const LONG = [
  'test/gateway/gateway-page.test.ts',
  'packages/cli/test/page.test.ts',
  'packages/agent/test/chat-screen-ends.test.ts',
  'packages/agent/test/mcp.test.ts',
  'packages/agent/test/tour-screen.test.ts',
  'test/gateway/gateway-processes.test.ts',
  'test/golden/golden.test.ts',
  'test/journeys.test.ts',
  'test/library/documents.test.ts',
  'test/drop-in/long-runs.test.ts',
]

/** Moves long files to the front and tests that stand beside a source file to the end, and changes nothing else in the order. */
export function orderByKind<File>(files: readonly File[], readPath: (file: File) => string): File[] {
  const rank = (file: File): number => {
    const path = readPath(file)
    if (LONG.some((long) => path.endsWith(`/${long}`))) return 0
    return /\/packages\/[^/]+\/src\//.test(path) ? 2 : 1
  }
  return files.toSorted((one, other) => rank(one) - rank(other))
}
