/** Files and functions that have outgrown one topic, and files too small to be one. */
import ts from 'typescript'
import { importsOf, isRelative, resolveImport } from './imports.ts'
import { type Finding, isTest, lineCount, lineOf, parse, type Source, walk } from './source.ts'

export interface SizeLimits {
  readonly fileLines: number
  readonly functionLines: number
  /** Tables and schemas: path, or `path#function`, with the reason why length is no fault there. */
  readonly excepted: ReadonlyMap<string, string>
}

export function checkSizes(sources: readonly Source[], limits: SizeLimits): readonly Finding[] {
  return sources.flatMap((source) => [...fileFindings(source, limits), ...functionFindings(source, limits)])
}

function fileFindings(source: Source, limits: SizeLimits): readonly Finding[] {
  const lines = lineCount(source.text)
  if (lines <= limits.fileLines || limits.excepted.has(source.path)) return []
  return [{ file: source.path, line: 0, why: `has ${lines} lines; the limit is ${limits.fileLines}` }]
}

/** Tests are left out: the body of a `describe` is a list, not a function. */
function functionFindings(source: Source, limits: SizeLimits): readonly Finding[] {
  if (isTest(source.path)) return []
  const file = parse(source)
  const findings: Finding[] = []
  walk(file, (node) => {
    if (!ts.isFunctionLike(node)) return
    const lines = lineCount(node.getText(file))
    const name = functionLabel(node)
    if (lines <= limits.functionLines || limits.excepted.has(`${source.path}#${name}`)) return
    findings.push({
      file: source.path,
      line: lineOf(file, node),
      why: `${name} has ${lines} lines; the limit is ${limits.functionLines}`,
    })
  })
  return findings
}

function functionLabel(node: ts.SignatureDeclaration): string {
  if (node.name !== undefined) return node.name.getText()
  const { parent } = node
  const named = ts.isVariableDeclaration(parent) || ts.isPropertyAssignment(parent)
  return named ? parent.name.getText() : '(anonymous)'
}

/**
 * Refuses a folder with more lines than its budget, and one that has none. Sources only: `packages/core/src/log/record.ts`
 * counts for `core/log`, `packages/cli/src/index.ts` for `cli`.
 */
export function checkFolderBudgets(
  sources: readonly Source[],
  budgets: Readonly<Record<string, number>>,
): readonly Finding[] {
  const lines = countFolderLines(sources)
  const unused = Object.keys(budgets).filter((folder) => !lines.has(folder))
  return [
    ...[...lines].flatMap(([folder, count]) => {
      const budget = budgets[folder] ?? 0
      if (count <= budget) return []
      return [{ file: folder, line: 0, why: `has ${count} lines; its budget is ${budget}` }]
    }),
    ...unused.map((folder) => ({ file: folder, line: 0, why: 'has a budget, and no sources' })),
  ]
}

/** Counts the lines of sources by folder. */
export function countFolderLines(sources: readonly Source[]): ReadonlyMap<string, number> {
  const lines = new Map<string, number>()
  for (const { path, text } of sources) {
    const [, name, inner] = /^packages\/([^/]+)\/src\/(?:([^/]+)\/)?/.exec(path) ?? []
    if (name === undefined || isTest(path)) continue
    const folder = inner === undefined ? name : `${name}/${inner}`
    lines.set(folder, (lines.get(folder) ?? 0) + lineCount(text))
  }
  return lines
}

/**
 * Refuses a file below `fewest` lines that only one other file imports: its content belongs there. Entries do not
 * count as importers. `excepted`: interfaces and tables, each with its reason.
 */
export function checkSmallFiles(
  sources: readonly Source[],
  fewest: number,
  excepted: ReadonlyMap<string, string>,
): readonly Finding[] {
  const importers = new Map<string, Set<string>>()
  for (const source of sources) {
    if (/(^|\/)index\.ts$/.test(source.path)) continue
    for (const { specifier } of importsOf(source)) {
      if (!isRelative(specifier)) continue
      const target = resolveImport(source.path, specifier)
      importers.set(target, (importers.get(target) ?? new Set()).add(source.path))
    }
  }
  return sources.flatMap(({ path, text }) => {
    const [importer, second] = importers.get(path) ?? []
    if (lineCount(text) >= fewest || importer === undefined || second !== undefined) return []
    if (excepted.has(path)) return []
    const why = `has ${lineCount(text)} lines and one importer: move it into ${importer}`
    return [{ file: path, line: 0, why }]
  })
}
