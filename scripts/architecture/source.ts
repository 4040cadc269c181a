/** A file as the checks see it: a path from the root of the repository, and its text. Nothing here reads the disk. */
import ts from 'typescript'

export interface Source {
  readonly path: string
  readonly text: string
}

/** One place that breaks a rule. `line` is 1 for the first; 0 where the file as a whole is meant. */
export interface Finding {
  readonly file: string
  readonly line: number
  readonly why: string
}

export function isTest(path: string): boolean {
  return /\.(test|soak)\.ts$/.test(path)
}

/** `packages/core/src/context/flatten-context.ts` → `core`; null outside `packages/`. */
export function packageOf(path: string): string | null {
  return /^packages\/([^/]+)\//.exec(path)?.[1] ?? null
}

const parsed = new WeakMap<Source, ts.SourceFile>()

export function parse(source: Source): ts.SourceFile {
  const known = parsed.get(source)
  if (known !== undefined) return known
  const options = {
    languageVersion: ts.ScriptTarget.Latest,
    jsDocParsingMode: ts.JSDocParsingMode.ParseNone,
  }
  const file = ts.createSourceFile(source.path, source.text, options, true)
  parsed.set(source, file)
  return file
}

export function lineOf(file: ts.SourceFile, node: ts.Node): number {
  return file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1
}

export function walk(node: ts.Node, visit: (node: ts.Node) => void): void {
  visit(node)
  ts.forEachChild(node, (child) => walk(child, visit))
}

/** How many lines an editor shows: a newline at the end starts no further line. */
export function lineCount(text: string): number {
  if (text === '') return 0
  return text.split('\n').length - (text.endsWith('\n') ? 1 : 0)
}

/** The findings as lines that an editor can jump to. */
export function tell(findings: readonly Finding[]): string {
  return findings.map(({ file, line, why }) => `${file}${line === 0 ? '' : `:${line}`}  ${why}`).join('\n')
}
