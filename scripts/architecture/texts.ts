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

/** Words of single providers: names of vendors, and fields that only one protocol has. */
const VENDOR_WORDS =
  /anthropic|claude|openai|gemini|(?<!_)(?:input|output)_tokens|cache_(?:creation|read_input|deleted_input|control|edits|reference)|stop_reason|end_turn|ephemeral|context_management|output_config|max_tokens|budget_tokens|applied_edits|previous_message_id/i

/**
 * Refuses words of single providers, comments included. `allowed`: files that may have them, and why. A file that no longer
 * has one is refused there, so that the list shrinks.
 */
export function checkVendorWords(
  sources: readonly Source[],
  allowed: ReadonlyMap<string, string>,
): readonly Finding[] {
  const found = sources.flatMap(({ path, text }) =>
    text.split('\n').flatMap((row, index) => {
      const [word] = VENDOR_WORDS.exec(row) ?? []
      return word === undefined
        ? []
        : [{ file: path, line: index + 1, why: `has a word of one provider: ${word}` }]
    }),
  )
  const unused = [...allowed.keys()].filter((path) => !found.some(({ file }) => file === path))
  return [
    ...found.filter(({ file }) => !allowed.has(file)),
    ...unused.map((file) => ({
      file,
      line: 0,
      why: 'has no word of one provider any more: it needs no exception',
    })),
  ]
}
