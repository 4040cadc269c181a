/**
 * Writes the table of docs/events.md: every event of a session with its fields, as the types declare them.
 * `node scripts/event-table.ts` brings the page up to date; a test compares both.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const EVENTS = `${ROOT}packages/tidemark/src/session/events.ts`
export const EVENTS_PAGE = `${ROOT}docs/events.md`

const TABLE = /^\| event \| fields \|\n(?:\|.*\n)+/m

/** Values that an event passes on whole, and whose fields belong to other pages. */
const OPAQUE_TYPES = new Set(['AssembledRequest', 'CacheForecast', 'PrefixSnapshot', 'CleanupFailure'])

/** Returns the page with its table as the types have it. */
export function updateEventsPage(page: string): string {
  return page.replace(TABLE, () => renderEventTable())
}

function renderEventTable(): string {
  const { config } = ts.readConfigFile(`${ROOT}tsconfig.json`, ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: [] }, ts.sys, ROOT)
  const program = ts.createProgram([EVENTS], { ...options, noEmit: true })
  const checker = program.getTypeChecker()
  const rows = listEventTypes(program, checker).map((event) => {
    const fields = event.getProperties()
    const kind = fields.find(({ name }) => name === 'type')
    const name = kind === undefined ? '' : checker.typeToString(checker.getTypeOfSymbol(kind)).slice(1, -1)
    const texts = fields.filter((field) => field !== kind).map((field) => describeField(field, checker))
    return `| \`${name}\` | ${texts.join(', ')} |\n`
  })
  // In the order of their names: that of the members of a type is the compiler's.
  return ['| event | fields |\n', '| --- | --- |\n', ...rows.toSorted()].join('')
}

function listEventTypes(program: ts.Program, checker: ts.TypeChecker): readonly ts.Type[] {
  const source = program.getSourceFile(EVENTS)
  const module = source === undefined ? undefined : checker.getSymbolAtLocation(source)
  const exported = module === undefined ? [] : checker.getExportsOfModule(module)
  const event = exported.find(({ name }) => name === 'SessionEvent')
  const union = event === undefined ? undefined : checker.getDeclaredTypeOfSymbol(event)
  return union?.isUnion() === true ? union.types : []
}

/** Formats a field with the fields of its value, if that is one object of Tidemark: `status` (`operation`, `phase`). */
function describeField(field: ts.Symbol, checker: ts.TypeChecker): string {
  const type = checker.getNonNullableType(checker.getTypeOfSymbol(field))
  const names = isOwnObject(type) ? type.getProperties().map(({ name }) => `\`${name}\``) : []
  return `\`${field.name}\`${names.length === 0 ? '' : ` (${names.join(', ')})`}`
}

function isOwnObject(type: ts.Type): boolean {
  const symbol = type.aliasSymbol ?? type.symbol
  if (!(type.flags & ts.TypeFlags.Object) || symbol === undefined || OPAQUE_TYPES.has(symbol.name))
    return false
  const [declaration] = symbol.declarations ?? []
  return declaration?.getSourceFile().fileName.includes('/packages/') === true
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const page = readFileSync(EVENTS_PAGE, 'utf8')
  writeFileSync(EVENTS_PAGE, updateEventsPage(page))
}
