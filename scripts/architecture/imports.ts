/** What a file imports, read off its syntax tree: plain, type-only, re-exported, `import()`, `require` and import types. */
import { posix } from 'node:path'
import ts from 'typescript'
import { lineOf, parse, type Source, walk } from './source.ts'

export interface Import {
  readonly specifier: string
  readonly line: number
}

const known = new WeakMap<Source, readonly Import[]>()

/** Returns the imports of a file. They are looked for once, since several checks need them. */
export function importsOf(source: Source): readonly Import[] {
  const imports = known.get(source) ?? findImports(source)
  known.set(source, imports)
  return imports
}

function findImports(source: Source): readonly Import[] {
  const file = parse(source)
  const found: Import[] = []
  walk(file, (node) => {
    const specifier = specifierOf(node)
    if (specifier !== null) found.push({ specifier, line: lineOf(file, node) })
  })
  return found
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

/** The names that a file imports, under the names of the files they come from; null for a file that is loaded whole. */
export function listImportedNames(source: Source): readonly { name: string | null; file: string }[] {
  const names: { name: string | null; file: string }[] = []
  walk(parse(source), (node) => {
    const specifier = specifierOf(node)
    if (specifier === null) return
    const file = isRelative(specifier) ? resolveImport(source.path, specifier) : specifier
    const clause = ts.isImportDeclaration(node)
      ? node.importClause?.namedBindings
      : ts.isExportDeclaration(node)
        ? node.exportClause
        : undefined
    if (ts.isImportTypeNode(node)) names.push({ name: node.qualifier?.getText() ?? null, file })
    else if (clause !== undefined && (ts.isNamedImports(clause) || ts.isNamedExports(clause)))
      for (const element of clause.elements)
        names.push({ name: (element.propertyName ?? element.name).text, file })
    else if (!ts.isImportDeclaration(node) || clause !== undefined) names.push({ name: null, file })
    if (ts.isImportDeclaration(node) && node.importClause?.name !== undefined)
      names.push({ name: 'default', file })
  })
  return names
}
