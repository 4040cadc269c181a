/** What a file imports, read off its syntax tree: plain, type-only, re-exported, `import()`, `require` and import types. */
import { posix } from 'node:path'
import ts from 'typescript'
import { lineOf, parse, type Source, walk } from './source.ts'

export interface Import {
  readonly specifier: string
  readonly line: number
  /** The names that it takes; null if it loads the file whole (`import()`, `import *`). */
  readonly names: readonly string[] | null
}

const known = new WeakMap<Source, readonly Import[]>()

/** Returns the imports of a file. They are looked for once, since several checks need them. */
export function importsOf(source: Source): readonly Import[] {
  const imports = known.get(source) ?? findImports(source)
  known.set(source, imports)
  return imports
}

/** An import that is not a statement of the file: `import()`, `require()` or an import type. */
const INNER_IMPORT = /\b(?:import|require)\s*\(/

function findImports(source: Source): readonly Import[] {
  const file = parse(source)
  const found: Import[] = []
  const visit = (node: ts.Node): void => {
    const specifier = specifierOf(node)
    if (specifier !== null) found.push({ specifier, line: lineOf(file, node), names: namesOf(node) })
  }
  if (INNER_IMPORT.test(source.text)) walk(file, visit)
  else file.statements.forEach(visit)
  return found
}

function namesOf(node: ts.Node): readonly string[] | null {
  if (ts.isImportTypeNode(node)) return node.qualifier === undefined ? null : [node.qualifier.getText()]
  if (!ts.isImportDeclaration(node) && !ts.isExportDeclaration(node)) return null
  const clause = ts.isImportDeclaration(node) ? node.importClause?.namedBindings : node.exportClause
  const byDefault = ts.isImportDeclaration(node) && node.importClause?.name !== undefined ? ['default'] : []
  if (clause === undefined) return ts.isExportDeclaration(node) ? null : byDefault
  if (!ts.isNamedImports(clause) && !ts.isNamedExports(clause)) return null
  return [...byDefault, ...clause.elements.map((element) => (element.propertyName ?? element.name).text)]
}

function specifierOf(node: ts.Node): string | null {
  if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return textOf(node.moduleSpecifier)
  if (ts.isImportTypeNode(node))
    return ts.isLiteralTypeNode(node.argument) ? textOf(node.argument.literal) : null
  if (ts.isCallExpression(node) && isLoader(node.expression)) return textOf(node.arguments[0])
  return null
}

function isLoader(callee: ts.Expression): boolean {
  return callee.kind === ts.SyntaxKind.ImportKeyword || (ts.isIdentifier(callee) && callee.text === 'require')
}

function textOf(node: ts.Node | undefined): string | null {
  return node !== undefined && ts.isStringLiteralLike(node) ? node.text : null
}

export function isRelative(specifier: string): boolean {
  return specifier.startsWith('./') || specifier.startsWith('../') || specifier === '.' || specifier === '..'
}

/** The path, from the root of the repository, that a relative import names. */
export function resolveImport(from: string, specifier: string): string {
  return posix.join(posix.dirname(from), specifier)
}

/** `@tidemark/core/testing` → `@tidemark/core`; `node:fs/promises` → `node:fs`. */
export function packageName(specifier: string): string {
  const parts = specifier.split('/')
  return parts.slice(0, specifier.startsWith('@') ? 2 : 1).join('/')
}
