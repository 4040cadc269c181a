/** What a file exports, by name, and how: made there, or handed on from another file. */
import ts from 'typescript'
import { lineOf, parse, type Source } from './source.ts'

export interface Export {
  /** `*` for `export * from`. */
  readonly name: string
  readonly line: number
  /** The module it comes from, where it is handed on. */
  readonly from: string | null
}

export function exportsOf(source: Source): readonly Export[] {
  const file = parse(source)
  return file.statements.flatMap((statement) =>
    namesOf(statement).map((name) => ({ name, line: lineOf(file, statement), from: originOf(statement) })),
  )
}

function originOf(statement: ts.Statement): string | null {
  if (!ts.isExportDeclaration(statement) || statement.moduleSpecifier === undefined) return null
  return ts.isStringLiteralLike(statement.moduleSpecifier) ? statement.moduleSpecifier.text : null
}

function namesOf(statement: ts.Statement): readonly string[] {
  if (ts.isExportAssignment(statement)) return ['default']
  if (ts.isExportDeclaration(statement)) return clauseNames(statement)
  if (!ts.canHaveModifiers(statement) || !has(statement, ts.SyntaxKind.ExportKeyword)) return []
  if (has(statement, ts.SyntaxKind.DefaultKeyword)) return ['default']
  if (ts.isVariableStatement(statement)) {
    return statement.declarationList.declarations.map((declaration) => declaration.name.getText())
  }
  return isNamed(statement) && statement.name !== undefined ? [statement.name.getText()] : []
}

function clauseNames({ exportClause }: ts.ExportDeclaration): readonly string[] {
  if (exportClause === undefined || ts.isNamespaceExport(exportClause)) return ['*']
  return exportClause.elements.map((element) => element.name.text)
}

function has(node: ts.HasModifiers, kind: ts.SyntaxKind): boolean {
  return ts.getModifiers(node)?.some((modifier) => modifier.kind === kind) ?? false
}

function isNamed(
  statement: ts.Statement,
): statement is
  | ts.FunctionDeclaration
  | ts.ClassDeclaration
  | ts.InterfaceDeclaration
  | ts.TypeAliasDeclaration {
  return (
    ts.isFunctionDeclaration(statement) ||
    ts.isClassDeclaration(statement) ||
    ts.isInterfaceDeclaration(statement) ||
    ts.isTypeAliasDeclaration(statement)
  )
}
