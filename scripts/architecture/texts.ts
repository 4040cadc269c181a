/** Rules for files of any kind: what a clone on another machine must not find in them. */
import { type Finding, lineCount, type Source } from './source.ts'

/** A path that exists on one machine only, where a path may begin: home folders of the usual systems, and workplaces. */
const MACHINE_PATH =
  /(?<![\w.~*}/-])(?:\/(?:home|Users|root|work|farm|mnt|workspaces?)\/[\w.-]+|[A-Z]:\\{1,2}Users\\)/g

/** `invented`: paths that tests make up and no machine is meant by. */
export function checkMachinePaths(
  sources: readonly Source[],
  invented: ReadonlySet<string> = new Set(),
): readonly Finding[] {
  return sources.flatMap(({ path, text }) =>
    text
      .split('\n')
      .flatMap((row, index) =>
        [...row.matchAll(MACHINE_PATH)]
          .filter(([found]) => !invented.has(found))
          .map(([found]) => ({ file: path, line: index + 1, why: `holds a path of one machine: ${found}` })),
      ),
  )
}

export function checkLength({ path, text }: Source, most: number): readonly Finding[] {
  const lines = lineCount(text)
  return lines <= most ? [] : [{ file: path, line: 0, why: `has ${lines} lines; the limit is ${most}` }]
}
