/**
 * A mutant: a small change that breaks the code on purpose, and the law that must notice it. A law that
 * notices nothing when its subject is broken proves nothing when it passes.
 *
 * Tables of mutants are the files of `mutants/`; each exports `mutants: readonly Mutant[]`.
 */
export interface Mutant {
  /** Short and unique, in kebab-case: what is broken (`clear-keeps-one-too-few`). */
  readonly name: string
  /** The law or rule expected to notice: text that the full name (`describe > it`) of a failing test holds, in any case. */
  readonly law: string
  /** The file to break, from the root of the repository. */
  readonly file: string
  /** Exact text that occurs exactly once in the file; where it no longer does, the mutant is stale and must be renewed. */
  readonly find: string
  /** What stands there instead. It must still load: a mutant is wrong code, not a syntax error. */
  readonly replace: string
  /** Which tests to run: vitest's own file filters, parts of paths. As few as hold the law. */
  readonly tests: readonly string[]
}

export type Applied =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly why: string }

export function applyMutant(text: string, mutant: Mutant): Applied {
  const parts = text.split(mutant.find)
  const [before, after] = parts
  if (mutant.find === '') return { ok: false, why: '`find` is empty' }
  if (before === undefined || after === undefined) return { ok: false, why: '`find` is not in the file' }
  if (parts.length > 2) return { ok: false, why: `\`find\` occurs ${parts.length - 1} times in the file` }
  if (mutant.find === mutant.replace) return { ok: false, why: '`replace` changes nothing' }
  return { ok: true, text: `${before}${mutant.replace}${after}` }
}
