/**
 * What a tool call does to the world, told by the shape of its input rather than by the tool's name: hosts name
 * their tools as they like, and a path beside a replacement is an edit everywhere.
 */
import { isObject, type Json } from '../conversation/json.ts'

export type ToolKind = 'shell' | 'edit' | 'write' | 'read' | 'search' | 'other'

/** What a call did to one file. A deletion counts as an edit: the path is still part of the work. */
export interface FileTouch {
  readonly path: string
  readonly act: 'edit' | 'write' | 'read'
  /** The text the call put there, where it says so. */
  readonly put: string | null
}

const PATHS = ['file_path', 'path', 'filePath', 'notebook_path', 'target_file', 'filename']
const REPLACEMENTS = ['new_string', 'new_str', 'new_source', 'newText', 'insert_text', 'replacement']
const CONTENTS = ['content', 'contents', 'file_text', 'text']
const QUERIES = ['pattern', 'query', 'glob', 'regex']
const COMMANDS = ['command', 'cmd', 'script']

const PATCHED = /^\*\*\* (Update|Add|Delete) File: (.+)$/gm

export function kindOf(input: Json): ToolKind {
  if (!isObject(input)) return 'other'
  if (commandOf(input) !== null) return 'shell'
  const path = textField(input, PATHS)
  if (path !== null && isEdit(input)) return 'edit'
  if (path !== null && textField(input, CONTENTS) !== null) return 'write'
  if (textField(input, QUERIES) !== null) return 'search'
  return path === null ? 'other' : 'read'
}

/** The command of a shell call as one text, or null. */
export function commandOf(input: Json): string | null {
  if (!isObject(input)) return null
  const action = isObject(input.action) ? commandOf(input.action as Json) : null
  for (const name of COMMANDS) {
    const value = input[name]
    if (typeof value === 'string') return value
    if (Array.isArray(value) && value.every((part) => typeof part === 'string')) return value.join(' ')
  }
  return action
}

/** The files a call names as its object; of a patch, every file in it. */
export function touchesOf(input: Json, kind: ToolKind): readonly FileTouch[] {
  const patched = patchedFiles(input)
  if (patched.length > 0) return patched
  const path = isObject(input) ? textField(input, PATHS) : null
  if (path === null || !isObject(input)) return []
  if (kind === 'edit') return [{ path, act: 'edit', put: replacementOf(input) }]
  if (kind === 'write') return [{ path, act: 'write', put: textField(input, CONTENTS) }]
  return kind === 'read' ? [{ path, act: 'read', put: null }] : []
}

function patchedFiles(input: Json): readonly FileTouch[] {
  return stringsIn(input).flatMap((text) => {
    if (!text.includes('*** ')) return []
    const heads = [...text.matchAll(PATCHED)]
    return heads.map((head, index) => {
      const [line, verb, path = ''] = head
      const body = text.slice(head.index + line.length, heads[index + 1]?.index)
      return { path: path.trim(), act: verb === 'Add' ? 'write' : 'edit', put: addedLines(body) }
    })
  })
}

function addedLines(patch: string): string | null {
  const added = patch.split('\n').filter((line) => line.startsWith('+'))
  return added.length === 0 ? null : added.map((line) => line.slice(1)).join('\n')
}

function isEdit(input: Readonly<Record<string, unknown>>): boolean {
  return replacementOf(input) !== null || 'old_string' in input || 'old_str' in input
}

/** Of several edits in one call, the last. */
function replacementOf(input: Readonly<Record<string, unknown>>): string | null {
  const one = textField(input, REPLACEMENTS)
  if (one !== null || !Array.isArray(input.edits)) return one
  const last: unknown = input.edits.at(-1)
  return isObject(last) ? textField(last, REPLACEMENTS) : null
}

function textField(input: Readonly<Record<string, unknown>>, names: readonly string[]): string | null {
  for (const name of names) {
    const value = Object.hasOwn(input, name) ? input[name] : null
    if (typeof value === 'string') return value
  }
  return null
}

/** Every text in a value, decoded, without the names of its fields. */
export function stringsIn(value: unknown): readonly string[] {
  const found: string[] = []
  const left: unknown[] = [value]
  while (left.length > 0) {
    const item = left.pop()
    if (typeof item === 'string') found.push(item)
    else if (Array.isArray(item)) for (let at = item.length - 1; at >= 0; at -= 1) left.push(item[at])
    else if (typeof item === 'object' && item !== null) left.push(...Object.values(item).reverse())
  }
  return found
}
