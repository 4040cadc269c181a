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
  return sources.flatMap(({ path, text }) => {
    if (text.search(MACHINE_PATH) === -1) return []
    return text
      .split('\n')
      .flatMap((row, index) =>
        [...row.matchAll(MACHINE_PATH)]
          .filter(([found]) => !invented.has(found))
          .map(([found]) => ({ file: path, line: index + 1, why: `holds a path of one machine: ${found}` })),
      )
  })
}

export function checkLength({ path, text }: Source, most: number): readonly Finding[] {
  const lines = lineCount(text)
  return lines <= most ? [] : [{ file: path, line: 0, why: `has ${lines} lines; the limit is ${most}` }]
}

/** Words of one provider's protocol: its fields, and the values that it gives them. */
const PROTOCOL_WORDS =
  /(?<!_)(?:input|output)_tokens|cache_(?:creation|read_input|deleted_input|control|edits|reference)|stop_reason|end_turn|ephemeral|context_management|output_config|max_tokens|budget_tokens|applied_edits|previous_message_id|anthropic-(?:beta|version)|x-api-key|'(?:5m|1h)'|prompt_cache_(?:key|options|retention|breakpoint)|reasoning_content|finish_reason|previous_response_id|item_reference|encrypted_content/i

/** Names of vendors and of their programs. */
const VENDOR_NAMES = /anthropic|claude|openai|codex|gemini/i

const REFUSED_WORDS = {
  protocol: { pattern: PROTOCOL_WORDS, fault: 'a word of one protocol' },
  vendor: { pattern: VENDOR_NAMES, fault: 'the name of a vendor or of its program' },
} as const

/**
 * Refuses words of single providers, comments included. `allowed`: files that may have them, and why. A file that no longer
 * has one is refused there, so that the list shrinks.
 */
export function checkVendorWords(
  sources: readonly Source[],
  kind: keyof typeof REFUSED_WORDS,
  allowed: ReadonlyMap<string, string>,
): readonly Finding[] {
  const { pattern, fault } = REFUSED_WORDS[kind]
  const found = sources.flatMap(({ path, text }) =>
    text.split('\n').flatMap((row, index) => {
      const [word] = pattern.exec(row) ?? []
      return word === undefined ? [] : [{ file: path, line: index + 1, why: `has ${fault}: ${word}` }]
    }),
  )
  const unused = [...allowed.keys()].filter((path) => !found.some(({ file }) => file === path))
  return [
    ...found.filter(({ file }) => !allowed.has(file)),
    ...unused.map((file) => ({
      file,
      line: 0,
      why: `no longer has ${fault}: it needs no exception`,
    })),
  ]
}
