/**
 * What a pure package may not touch: the clock, chance, the platform, and whatever depends on where the
 * machine stands (locale, time zone). Pure globals (`TextEncoder`, `TextDecoder`, `atob`, `structuredClone`) and the type
 * `AbortSignal` are allowed; packages/core/src/platform.d.ts declares them. Names are resolved by the compiler's own binder, so a parameter that
 * happens to be called `process` is not mistaken for the global.
 */
import ts from 'typescript'
import { type Finding, lineOf, parse, type Source, walk } from './source.ts'

const PLATFORM = new Set(
  `console process global globalThis window self document navigator localStorage
  setTimeout setInterval setImmediate clearTimeout clearInterval clearImmediate queueMicrotask
  fetch performance crypto Buffer AbortController AbortSignal
  URL URLSearchParams require module exports __dirname __filename eval Function Intl WeakRef
  FinalizationRegistry`.split(/\s+/),
)

/** Methods whose answer depends on the machine's locale or time zone, whatever they are called on. */
const LOCAL_METHODS = new Set(
  `toLocaleString toLocaleDateString toLocaleTimeString getTimezoneOffset getFullYear getMonth getDate getDay
  getHours getMinutes getSeconds getMilliseconds toDateString toTimeString`.split(/\s+/),
)

/** Methods that are fixed by a locale given as their last argument: method → how many arguments that makes. */
const NEEDS_LOCALE = new Map([
  ['localeCompare', 2],
  ['toLocaleUpperCase', 1],
  ['toLocaleLowerCase', 1],
])

export function checkPurity(sources: readonly Source[]): readonly Finding[] {
  const checker = bind(sources)
  return sources.flatMap((source) => {
    const file = checker.files.get(source.path)
    if (file === undefined) return []
    const findings: Finding[] = []
    walk(file, (node) => {
      const why = impurity(node, checker.isGlobal)
      if (why !== null) findings.push({ file: source.path, line: lineOf(file, node), why })
    })
    return findings
  })
}

interface Binding {
  readonly files: ReadonlyMap<string, ts.SourceFile>
  /** True for an identifier that nothing in its own file declares. */
  readonly isGlobal: (node: ts.Identifier) => boolean
}

/** A program with no library and no resolution: whatever a file does not declare has no symbol. */
function bind(sources: readonly Source[]): Binding {
  const files = new Map(sources.map((source) => [source.path, parse(source)]))
  const options = { noLib: true, noResolve: true, moduleDetection: ts.ModuleDetectionKind.Force, types: [] }
  const host: ts.CompilerHost = {
    ...ts.createCompilerHost(options),
    getSourceFile: (name) => files.get(name),
    fileExists: (name) => files.has(name),
    readFile: (name) => files.get(name)?.text,
    getCurrentDirectory: () => '',
  }
  const checker = ts.createProgram([...files.keys()], options, host).getTypeChecker()
  const isGlobal = (node: ts.Identifier): boolean => {
    const symbol = ts.isShorthandPropertyAssignment(node.parent)
      ? checker.getShorthandAssignmentValueSymbol(node.parent)
      : checker.getSymbolAtLocation(node)
    return symbol === undefined || node.text === 'globalThis'
  }
  return { files, isGlobal }
}

function impurity(node: ts.Node, isGlobal: Binding['isGlobal']): string | null {
  if (ts.isMetaProperty(node) && node.keywordToken === ts.SyntaxKind.ImportKeyword)
    return 'import.meta: the platform'
  if (ts.isPropertyAccessExpression(node)) return methodImpurity(node.name.text, node)
  if (ts.isElementAccessExpression(node) && ts.isStringLiteralLike(node.argumentExpression)) {
    return methodImpurity(node.argumentExpression.text, node)
  }
  return ts.isIdentifier(node) && isValue(node) && isGlobal(node) ? globalImpurity(node) : null
}

function methodImpurity(name: string, access: ts.Node): string | null {
  if (LOCAL_METHODS.has(name)) return `${name}: depends on the machine's locale or time zone`
  const needed = NEEDS_LOCALE.get(name)
  if (needed === undefined) return null
  const call = access.parent
  const given = ts.isCallExpression(call) && call.expression === access ? call.arguments.length : 0
  return given >= needed ? null : `${name} without a locale: depends on the machine's`
}

/** An identifier that is read, as opposed to a declaration's or a property's name, a label or a type. */
function isValue(node: ts.Identifier): boolean {
  const { parent } = node
  if (ts.isPropertyAccessExpression(parent)) return parent.expression === node
  if (ts.isPropertyAssignment(parent) || ts.isMethodDeclaration(parent)) return parent.name !== node
  if (ts.isPropertyDeclaration(parent) || ts.isPropertySignature(parent)) return parent.name !== node
  if (ts.isBindingElement(parent)) return parent.initializer === node
  if (ts.isTypeQueryNode(parent)) return true
  return (
    !ts.isTypeNode(parent) &&
    !ts.isImportSpecifier(parent) &&
    !ts.isNamedTupleMember(parent) &&
    !ts.isQualifiedName(parent)
  )
}

function globalImpurity(node: ts.Identifier): string | null {
  if (node.text === 'Date') return dateImpurity(node)
  if (node.text === 'Math') return mathImpurity(node)
  return PLATFORM.has(node.text) ? `${node.text}: the platform` : null
}

/** Allowed: `new Date(value)`, `Date.UTC`, `Date.parse`, `x instanceof Date`. Anything else could read the clock. */
function dateImpurity(node: ts.Identifier): string | null {
  const { parent } = node
  if (ts.isNewExpression(parent) && parent.expression === node) {
    return (parent.arguments ?? []).length > 0 ? null : 'new Date(): the clock'
  }
  const member = memberOf(node)
  if (member === 'UTC' || member === 'parse') return null
  if (ts.isBinaryExpression(parent) && parent.operatorToken.kind === ts.SyntaxKind.InstanceOfKeyword)
    return null
  return member === null ? 'Date: the clock' : `Date.${member}: the clock`
}

/** Allowed: a named member that is not `random`. A bare `Math` could be taken apart elsewhere. */
function mathImpurity(node: ts.Identifier): string | null {
  const member = memberOf(node)
  if (member === null) return 'Math as a value: call its functions by name'
  return member === 'random' ? 'Math.random: chance' : null
}

function memberOf(node: ts.Identifier): string | null {
  const { parent } = node
  if (ts.isPropertyAccessExpression(parent) && parent.expression === node) return parent.name.text
  if (ts.isElementAccessExpression(parent) && ts.isStringLiteralLike(parent.argumentExpression)) {
    return parent.argumentExpression.text
  }
  return null
}
