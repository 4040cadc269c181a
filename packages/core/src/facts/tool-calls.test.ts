import { describe, expect, it } from 'vitest'
import { createCarryContext, Disk } from '../../test/carry/carried-session.ts'
import { Situation } from '../../test/clear/situation.ts'
import type { ContextEntry } from '../context/context-entry.ts'
import type { Json, JsonObject } from '../log/json.ts'
import { listBranchRecords } from '../log/session-log.ts'
import { collectSourceAttachments } from '../sources/collect-sources.ts'
import { filesSource } from '../sources/file-source.ts'
import { extractSessionFacts } from './session-facts.ts'
import {
  canToolReadFiles,
  collectJsonStrings,
  describeToolCall,
  type FileTouch,
  findLargeInputFields,
  isFileUnchangedNotice,
  normalizePath,
  type ToolCallFacts,
} from './tool-calls.ts'

type Act = FileTouch['action'] | null

const PATH = '/p/a.ts'
const PATCH = `*** Begin Patch\n*** Update File: ${PATH}\n@@\n-old\n+new\n*** End Patch`
const ADDED = `*** Begin Patch\n*** Add File: ${PATH}\n+one\n+two\n*** End Patch`

/** What the summary's facts, clearing and the file source each take the call for. */
async function answersFor(name: string, input: Json): Promise<readonly unknown[]> {
  const situation = new Situation()
  // `Situation` takes objects; a tool may be given a plain text too.
  situation.call(name, input as JsonObject, 'done')
  const [file] = extractSessionFacts(listBranchRecords(situation.builder.session)).files
  const change = file?.isNew === true ? 'write' : 'edit'
  const summary = file?.path !== PATH ? null : file.edits > 0 ? change : 'read'
  const { kind = null, path = null } = situation.register.calls.at(0) ?? {}
  return [summary, path === PATH ? kind : null, await askFileSource(name, input)]
}

/** A file that is touched comes back. One whose read is kept comes back only if it was changed since. */
async function askFileSource(name: string, input: Json): Promise<'read' | 'change' | null> {
  const reader = new Disk()
  reader.files.set(PATH, 'now')
  const situation = new Situation()
  const isCarried = async (kept: readonly ContextEntry[]): Promise<boolean> => {
    const { carried } = await collectSourceAttachments(
      [filesSource({ reader })],
      createCarryContext(situation.builder, kept),
    )
    return carried.some(({ source }) => source === PATH)
  }
  situation.call(name, input as JsonObject, 'done')
  if (!(await isCarried([]))) return null
  const before = situation.builder.view.entries.length
  situation.read(PATH, 1)
  const kept = situation.builder.view.entries.toArray().slice(before)
  situation.call(name, input as JsonObject, 'done')
  return (await isCarried(kept)) ? 'change' : 'read'
}

describe('the summary, clearing and the file source agree on what a call did to a file', () => {
  it.each<[string, Json, Act]>([
    ['Read', { file_path: PATH }, 'read'],
    ['Read', { file_path: PATH, offset: 5, limit: 10 }, 'read'],
    ['read', { filePath: PATH }, 'read'],
    ['read_file', { target_file: PATH }, 'read'],
    ['NotebookRead', { notebook_path: PATH }, 'read'],
    ['Edit', { file_path: PATH, old_string: 'x', new_string: 'y' }, 'edit'],
    ['Edit', { file_path: PATH }, 'edit'],
    ['edit', { filePath: PATH, oldString: 'x', newString: 'y' }, 'edit'],
    ['edit_file', { path: PATH, edits: [{ oldText: 'x', newText: 'y' }] }, 'edit'],
    ['MultiEdit', { file_path: PATH, edits: [{ old_string: 'x', new_string: 'y' }] }, 'edit'],
    ['NotebookEdit', { notebook_path: PATH, new_source: 'y' }, 'edit'],
    ['Write', { file_path: PATH, content: 'all' }, 'write'],
    ['write', { filePath: PATH, content: 'all' }, 'write'],
    ['save', { target_file: PATH, content: 'all' }, 'write'],
    ['save', { path: PATH, contents: 'all' }, 'write'],
    ['read_file', { absolute_path: PATH }, 'read'],
    ['write_files', { files: [{ path: PATH, content: 'all' }] }, 'write'],
    ['push_files', { repo: 'r', files: [{ path: PATH, content: 'all' }] }, null],
    ['editor', { command: 'view', path: PATH, view_range: [1, 9] }, 'read'],
    ['editor', { command: 'create', path: PATH, file_text: 'all' }, 'write'],
    ['editor', { command: 'str_replace', path: PATH, old_str: 'x', new_str: 'y' }, 'edit'],
    ['editor', { command: 'insert', path: PATH, insert_line: 3, insert_text: 'y' }, 'edit'],
    ['editor', { command: 'undo_edit', path: PATH }, 'edit'],
    ['memory', { command: 'delete', path: PATH }, 'edit'],
    ['memory', { command: 'rename', old_path: PATH, new_path: '/p/b.ts' }, 'edit'],
    ['apply_patch', PATCH, 'edit'],
    ['apply_patch', { input: PATCH }, 'edit'],
    ['apply_patch', { patch: PATCH }, 'edit'],
    ['apply_patch', { input: ADDED }, 'write'],
    ['Grep', { pattern: 'x', path: PATH }, null],
    ['Glob', { pattern: '*.ts', path: PATH }, null],
    ['LS', { path: PATH }, null],
    ['Bash', { command: `wc -l ${PATH}` }, null],
    ['get_contents', { repo: 'r', path: PATH }, null],
    ['put_contents', { repo: 'r', path: PATH, content: 'all' }, null],
    ['TodoWrite', { todos: [] }, null],
    ['Read', { file_path: ' ' }, null],
    ['nothing', {}, null],
    ['nothing', null, null],
  ])('%s %j: %s', async (name, input, act) => {
    const isChange = act === 'edit' || act === 'write'
    expect(await answersFor(name, input)).toEqual([act, act, isChange ? 'change' : act])
  })

  it.each<[string, Json]>([
    ['Bash', { command: `cat ${PATH}` }],
    ['exec_command', { cmd: 'sed -n 1,200p a.ts', workdir: '/p' }],
  ])('%s %j: a command, whose file comes back like one that was read', async (name, input) => {
    expect(await answersFor(name, input)).toEqual([null, null, 'read'])
  })

  it('also on tools that policy names', async () => {
    const named = { readTools: ['Peek'], writeTools: ['Mend'] }
    const kinds = ['Peek', 'Mend', 'Edit'].map(
      (name) => describeToolCall(name, { path: PATH, n: 1 }, named).kind,
    )
    expect(kinds).toEqual(['read', 'edit', 'read'])
    expect(describeToolCall('Peek', { path: PATH, text: 'find this' }, named).kind).toBe('read')
  })
})

const nothing: ToolCallFacts = {
  ...{ kind: 'other', path: null, range: null, command: null },
  ...{ touches: [], edits: [] },
}

describe('what a call says of itself', () => {
  it.each<[string, Json, Partial<ToolCallFacts>]>([
    ['Bash', { command: 'ls /src' }, { kind: 'run', command: 'ls /src' }],
    ['shell', { command: ['git', 'diff'], workdir: '/' }, { kind: 'run', command: 'git diff' }],
    ['exec_command', { cmd: 'git diff' }, { kind: 'run', command: 'git diff' }],
    ['local_shell', { action: { command: ['ls'] } }, { kind: 'run', command: 'ls' }],
    ['shell', { command: 3 }, {}],
    ['Grep', { pattern: 'x', path: '/src' }, { kind: 'search' }],
    ['LS', { path: '/src' }, { kind: 'search' }],
    [
      'Read',
      { file_path: '/a', offset: 3, limit: null },
      {
        ...{ kind: 'read', path: '/a', range: '[["offset",3]]' },
        touches: [{ path: '/a', action: 'read', newText: null }],
      },
    ],
    [
      'MultiEdit',
      {
        file_path: '/a',
        edits: [
          { old_string: 'x', new_string: 'y', replace_all: true },
          { old_string: 'v', new_string: 'z' },
        ],
      },
      {
        ...{ kind: 'edit', path: '/a', touches: [{ path: '/a', action: 'edit', newText: 'z' }] },
        edits: [
          { oldText: 'x', newText: 'y', replaceAll: true },
          { oldText: 'v', newText: 'z', replaceAll: false },
        ],
      },
    ],
    [
      'Write',
      { file_path: '/a', content: '*** Update File: /b' },
      {
        kind: 'write',
        path: '/a',
        touches: [{ path: '/a', action: 'write', newText: '*** Update File: /b' }],
      },
    ],
    [
      'apply_patch',
      { input: '*** Update File: src/a.ts\n@@\n-old\n+new\n+line\n*** Delete File: src/b.ts\n' },
      {
        kind: 'edit',
        touches: [
          {
            path: 'src/a.ts',
            action: 'edit',
            newText: 'new\nline',
            oldText: 'old',
            edits: [{ oldText: 'old', newText: 'new\nline', replaceAll: false }],
          },
          { path: 'src/b.ts', action: 'edit', isDeletion: true, newText: null },
        ],
      },
    ],
    [
      'shell',
      { command: "apply_patch <<'E'\n*** Add File: src/a.ts\n+new\nE" },
      {
        ...{ kind: 'run', command: "apply_patch <<'E'\n*** Add File: src/a.ts\n+new\nE" },
        touches: [{ path: 'src/a.ts', action: 'write', newText: 'new' }],
      },
    ],
    ['nothing', 'plain text', {}],
    ['nothing', [], {}],
  ])('%s %j', (name, input, facts) => {
    expect(describeToolCall(name, input)).toEqual({ ...nothing, ...facts })
  })
})

it('the texts in a value are decoded, in order, without the names of fields', () => {
  const value = { a: 'one\ntwo', b: [1, 'three', { c: 'four' }], d: null }
  expect(collectJsonStrings(value)).toEqual(['one\ntwo', 'three', 'four'])
})

it('large inputs are texts from the figure on', () => {
  const texts = { content: 'x'.repeat(12), old: 'y'.repeat(8) }
  const input = { file_path: '/a', ...texts, count: 99, list: ['z'.repeat(99)] }
  const call = { type: 'tool_use' as const, id: 'c', name: 'T', input }
  expect(findLargeInputFields(call, 2, (text) => text.length / 4)).toEqual([
    { field: 'content', tokens: 3 },
    { field: 'old', tokens: 2 },
  ])
})

it.each([
  ['FILE_UNCHANGED', true],
  ['File unchanged since last read. See above.', true],
  ['<system-reminder>\nFile unchanged since last read', true],
  ['[file unchanged]', true],
  ['The file unchanged since May', false],
])('a result of %j says that the file is unchanged: %s', (result, expected) => {
  expect(isFileUnchangedNotice(result)).toBe(expected)
})

it.each([
  ['C:\\p\\a.ts', '/p', 'C:/p/a.ts'],
  ['./a.ts', null, 'a.ts'],
  ['a.ts', '/p', '/p/a.ts'],
  ['/p/x/../a.ts', null, '/p/a.ts'],
])('the path %j in %j is %j', (path, folder, plain) => {
  expect(normalizePath(path, folder)).toBe(plain)
})

describe('a tool that can read any file', () => {
  const define = (name: string, fields: readonly string[], required = fields) => ({
    name,
    input_schema: {
      type: 'object',
      properties: Object.fromEntries(fields.map((field) => [field, { type: 'string' }])),
      required,
    },
  })

  it.each([
    ['a file reader', define('open_file', ['path', 'offset'], ['path']), true],
    ['a shell', define('exec', ['command', 'cwd']), true],
    ["the provider's own shell", { type: 'bash_20250124', name: 'bash' }, true],
    [
      "the provider's own editor",
      { type: 'text_editor_20250728', name: 'str_replace_based_edit_tool' },
      true,
    ],
    ['a writer', define('Write', ['file_path', 'content']), false],
    ['a search', define('Grep', ['pattern', 'path']), false],
    ['a tool for something else', define('get_weather', ['city']), false],
    ['a tool without a schema', { name: 'history' }, false],
  ])('%s', (_, definition, expected) => {
    expect(canToolReadFiles(definition)).toBe(expected)
  })
})
