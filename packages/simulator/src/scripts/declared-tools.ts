/**
 * Finds the declared tools that read, write, edit and search files, run commands and keep a todo list, by words in
 * their names and by fields of their schemas. Creates inputs that are valid for their schemas.
 */
import { isObject, type Json, type JsonObject } from '../protocol/messages-request.ts'

export type ToolRole = 'read' | 'write' | 'edit' | 'shell' | 'search' | 'todos'

interface DeclaredTool {
  readonly name: string
  readonly schema: JsonObject
}

export type ToolsByRole = Partial<Readonly<Record<ToolRole, DeclaredTool>>>

/** The meaning of a field, whatever its name in a client: `file_path`, `filePath` and `path` all mean `path`. */
type FieldMeaning = keyof typeof FIELD_NAMES

/** Possible names of fields, in lower case and without separators. */
const FIELD_NAMES = {
  path: ['path', 'filepath', 'file', 'filename', 'absolutepath', 'targetfile'],
  content: ['content', 'contents', 'filetext', 'filecontent', 'text'],
  oldText: ['oldstring', 'oldtext', 'oldstr'],
  newText: ['newstring', 'newtext', 'newstr'],
  edits: ['edits', 'replacements'],
  command: ['command', 'cmd'],
  pattern: ['pattern', 'regex', 'regexp'],
  todos: ['todos', 'todolist', 'items'],
  status: ['status', 'state'],
  activeForm: ['activeform'],
  description: ['description', 'explanation'],
  limit: ['limit', 'maxlines'],
  timeout: ['timeout', 'timeoutms'],
} as const

interface RoleRule {
  /** A word that the name of the tool must contain. */
  readonly word: RegExp
  /** The tool must have all fields of one of these lists. */
  readonly fields: readonly (readonly FieldMeaning[])[]
  readonly without: readonly FieldMeaning[]
}

const ROLE_RULES: Readonly<Record<ToolRole, RoleRule>> = {
  read: {
    word: /read|view|open|cat/i,
    fields: [['path']],
    without: ['content', 'oldText', 'edits', 'command'],
  },
  write: {
    word: /write|create|save/i,
    fields: [['path', 'content']],
    without: ['oldText', 'edits', 'command'],
  },
  edit: {
    word: /edit|replace|update/i,
    fields: [
      ['path', 'oldText', 'newText'],
      ['path', 'edits'],
    ],
    without: ['command'],
  },
  shell: {
    word: /bash|shell|exec|run|command|terminal/i,
    fields: [['command']],
    without: ['path', 'content'],
  },
  search: { word: /grep|search/i, fields: [['pattern']], without: ['content', 'command'] },
  todos: { word: /todo/i, fields: [['todos']], without: ['path'] },
}

/**
 * Finds one tool for each role. If several fit, the one with the shortest name is used: `Read` rather than
 * `mcp__files__read_text_file`.
 */
export function findToolsByRole(tools: readonly JsonObject[]): ToolsByRole {
  const known = tools
    .flatMap(({ name, input_schema }) =>
      typeof name === 'string' && isSchema(input_schema) ? [{ name, schema: input_schema }] : [],
    )
    .toSorted((one, other) => one.name.length - other.name.length)
  const found: Partial<Record<ToolRole, DeclaredTool>> = {}
  for (const [role, rule] of Object.entries(ROLE_RULES)) {
    const tool = known.find((each) => hasRole(each, rule))
    if (tool !== undefined) found[role as ToolRole] = tool
  }
  return found
}

function hasRole({ name, schema }: DeclaredTool, { word, fields, without }: RoleRule): boolean {
  const meanings = new Set(Object.keys(readProperties(schema)).map(findMeaning))
  return (
    word.test(name) &&
    fields.some((list) => list.every((field) => meanings.has(field))) &&
    !without.some((field) => meanings.has(field))
  )
}

function findMeaning(field: string): FieldMeaning | null {
  const plain = field.toLowerCase().replaceAll(/[^a-z]/g, '')
  const entry = Object.entries(FIELD_NAMES).find(([, names]) => (names as readonly string[]).includes(plain))
  return entry === undefined ? null : (entry[0] as FieldMeaning)
}

/** The value of a field. A list stands for a list of objects, such as the edits of one call. */
type FieldValue = string | number | readonly ToolInputValues[]
export type ToolInputValues = Partial<Readonly<Record<FieldMeaning, FieldValue>>>

/**
 * Creates an input for a schema: the given values in the fields with their meaning, and any valid value in other
 * required fields. Values without a field in the schema are left out.
 */
export function createToolInput(schema: JsonObject, values: ToolInputValues): JsonObject {
  const required = Array.isArray(schema.required) ? schema.required : []
  const input: Record<string, Json> = {}
  for (const [name, field] of Object.entries(readProperties(schema))) {
    const meaning = findMeaning(name)
    const value = meaning === null ? undefined : values[meaning]
    if (value !== undefined) input[name] = toFieldJson(field, value)
    else if (required.includes(name)) input[name] = createSchemaValue(field, meaning)
  }
  return input
}

function toFieldJson(field: JsonObject, value: FieldValue): Json {
  if (typeof value === 'object') return value.map((each) => createToolInput(readItems(field), each))
  const choices = Array.isArray(field.enum) ? field.enum : []
  return choices.length === 0 || choices.includes(value) ? value : (choices[0] ?? value)
}

/** Values for required number fields that must not be too small: lines to read, milliseconds to wait. */
const LEAST_NUMBERS: Partial<Record<FieldMeaning, number>> = { limit: 2_000, timeout: 60_000 }

/**
 * Creates a value that is valid for a schema: its default, its constant or null if there is one, otherwise the simplest
 * value of its type. `meaning`: what the field stands for, because some numbers must not be 0.
 */
export function createSchemaValue(schema: JsonObject, meaning: FieldMeaning | null = null): Json {
  const variants = [schema.anyOf, schema.oneOf].flatMap((list) =>
    Array.isArray(list) ? list.filter(isSchema) : [],
  )
  const types = Array.isArray(schema.type) ? schema.type : [schema.type]
  if (schema.default !== undefined) return schema.default
  if (schema.const !== undefined) return schema.const
  if (types.includes('null') || variants.some(({ type }) => type === 'null')) return null
  if (variants[0] !== undefined) return createSchemaValue(variants[0], meaning)
  if (Array.isArray(schema.enum)) return schema.enum[0] ?? null
  switch (types[0]) {
    case 'integer':
    case 'number':
      return createNumber(schema, (meaning === null ? undefined : LEAST_NUMBERS[meaning]) ?? 0)
    case 'boolean':
      return false
    case 'array':
      return Array.from({ length: readNumber(schema.minItems) ?? 0 }, () =>
        createSchemaValue(readItems(schema)),
      )
    case 'object':
      return createToolInput(schema, {})
    default:
      return 'none'
        .padEnd(readNumber(schema.minLength) ?? 0, '.')
        .slice(0, readNumber(schema.maxLength) ?? undefined)
  }
}

function createNumber(schema: JsonObject, wanted: number): number {
  const above = readNumber(schema.exclusiveMinimum)
  const least = Math.max(readNumber(schema.minimum) ?? 0, above === null ? 0 : above + 1, wanted)
  return Math.min(least, readNumber(schema.maximum) ?? least)
}

function readNumber(value: unknown): number | null {
  return typeof value === 'number' ? value : null
}

function readItems({ items }: JsonObject): JsonObject {
  return isSchema(items) ? items : {}
}

function readProperties({ properties }: JsonObject): Readonly<Record<string, JsonObject>> {
  const entries = isSchema(properties) ? Object.entries(properties) : []
  return Object.fromEntries(entries.flatMap(([name, field]) => (isSchema(field) ? [[name, field]] : [])))
}

function isSchema(value: unknown): value is JsonObject {
  return isObject(value)
}
