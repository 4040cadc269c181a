import type { SessionRecord } from '@tidemark/core/log/record'
import { runStepsAtOnce } from '@tidemark/core/log/work-steps'
import { expect, it } from 'vitest'
import { createLoggedFileReader } from './log-sources.ts'
import { collectLoggedFileTexts } from './logged-file-texts.ts'

interface Step {
  readonly tool: string
  readonly input: object
  readonly result?: string
  /** Null if the log does not say whether the call failed. Default: false. */
  readonly failed?: boolean | null
  readonly beside?: object
}

function records(steps: readonly Step[]): readonly SessionRecord[] {
  const common = { timestamp: '2026-03-09T09:00:00.000Z', sessionId: 's', parentUuid: null }
  return steps.flatMap(({ tool, input, result = 'ok', failed = false, beside }, index): SessionRecord[] => {
    const id = `call-${index}`
    const call = { type: 'tool_use', id, name: tool, input }
    const status = failed === null ? {} : { is_error: failed }
    const answer = { type: 'tool_result', tool_use_id: id, content: result, ...status }
    const message = { id: `m${index}`, role: 'assistant', model: 'm', content: [call] } as const
    return [
      { ...common, type: 'assistant', uuid: `a${index}`, message },
      {
        ...{ ...common, type: 'user', uuid: `u${index}`, message: { role: 'user', content: [answer] } },
        ...(beside === undefined ? {} : { toolUseResult: beside }),
      } as SessionRecord,
    ]
  })
}

const file_path = '/p/a.ts'
const write = (content: string): Step => ({ tool: 'Write', input: { file_path, content } })
const edit = (old_string: string, new_string: string, more: object = {}): Step => ({
  tool: 'Edit',
  input: { file_path, old_string, new_string, ...more },
})
const read = (result: string, more: object = {}): Step => ({
  tool: 'Read',
  input: { file_path, ...more },
  result,
})

const shell = (cmd: string, result: string, more: object = {}): Step => ({
  tool: 'exec_command',
  input: { cmd, ...more },
  result,
})
const patch = (body: string): Step => ({
  tool: 'apply_patch',
  input: { input: `*** Update File: ${file_path}\n${body}\n*** End Patch` },
})
/** A call of Codex that failed, which only its result says. */
const refused = (step: Step): Step => ({ result: 'apply_patch verification failed', ...step, failed: null })

const editor = (input: object): Step => ({ tool: 'editor', input: { path: file_path, ...input } })

const whole = (text: string): object => ({ parts: [{ from: 1, text }], isWhole: true })
const parts = (...known: readonly (readonly [number | null, string])[]): object => ({
  parts: known.map(([from, text]) => ({ from, text })),
  isWhole: false,
})

const cases: readonly (readonly [string, readonly Step[], object | undefined])[] = [
  ['what was written', [write('one\ntwo')], whole('one\ntwo')],
  ['an edit of it', [write('a b a'), edit('a', '$&x')], whole('$&x b a')],
  ['all places at once', [write('a b a'), edit('a', 'c', { replace_all: true })], whole('c b c')],
  [
    'several edits in a row',
    [
      write('a b'),
      {
        tool: 'MultiEdit',
        input: {
          file_path,
          edits: [
            { old_string: 'a', new_string: 'x' },
            { old_string: 'b', new_string: 'y' },
          ],
        },
      },
    ],
    whole('x y'),
  ],
  ['an edit that failed changes nothing', [write('a'), { ...edit('a', 'b'), failed: true }], whole('a')],
  ['what an edit put into a file of which nothing else is known', [edit('a', 'b')], parts([null, 'b'])],
  [
    'what was known, and what an edit put there that does not fit it: something else changed the file',
    [write('a'), edit('z', 'b')],
    parts([1, 'a'], [null, 'b']),
  ],
  [
    'an edit of lines that a formatter has indented',
    [write('{\n    one\n    two\n}'), edit('\tone\n\ttwo', '  three')],
    whole('{\n  three\n}'),
  ],
  [
    'the file as the program noted it before an edit',
    [{ ...edit('two', '2'), beside: { originalFile: 'one\ntwo\n' } }],
    whole('one\n2\n'),
  ],
  [
    'numbered lines, without the reminder behind them',
    [read('     1→one\n     2→  two\n\n<system-reminder>\nmind\n</system-reminder>\n')],
    whole('one\n  two'),
  ],
  ['a part of it', [read('    7→seven\n    8→eight', { offset: 7, limit: 2 })], parts([7, 'seven\neight'])],
  [
    'parts that were read one after the other, with an edit in the first',
    [
      read('    7→seven\n    8→eight', { offset: 7, limit: 2 }),
      read('    20→twenty', { offset: 20, limit: 1 }),
      read('    9→nine', { offset: 9, limit: 1 }),
      edit('eight', 'eight\nand a half'),
    ],
    parts([7, 'seven\neight\nand a half\nnine'], [21, 'twenty']),
  ],
  [
    'a part that differs from what was read before: something else changed the file',
    [read('    7→seven', { offset: 7, limit: 1 }), read('    7→other\n    8→eight', { offset: 7, limit: 2 })],
    parts([7, 'other\neight']),
  ],
  [
    'parts beside an edit between them, whose place is not known',
    [read('    7→seven', { offset: 7, limit: 1 }), edit('unseen', 'new')],
    parts([7, 'seven'], [null, 'new']),
  ],
  [
    'a part of what is known as a whole',
    [write('one\ntwo\nthree'), read('2→two', { offset: 2, limit: 1 })],
    whole('one\ntwo\nthree'),
  ],
  [
    'a part that the whole does not have takes the place of its own lines only',
    [write('one\ntwo\nthree'), read('2→new', { offset: 2, limit: 1 })],
    parts([1, 'one\nnew\nthree']),
  ],
  [
    'what the program noted of a reading',
    [{ ...read('…'), beside: { file: { content: 'x', startLine: 1, numLines: 1, totalLines: 1 } } }],
    whole('x'),
  ],
  [
    'what the text editor tool made of it',
    [
      editor({ command: 'create', file_text: 'a b' }),
      editor({ command: 'str_replace', old_str: 'b', new_str: 'c' }),
    ],
    whole('a c'),
  ],
  [
    'what an insertion put there',
    [write('a'), editor({ command: 'insert', insert_text: 'b' })],
    parts([1, 'a'], [null, 'b']),
  ],
  [
    'edits in other spellings',
    [
      { tool: 'write', input: { filePath: file_path, content: 'a b' } },
      { tool: 'edit', input: { filePath: file_path, oldString: 'b', newString: 'c' } },
    ],
    whole('a c'),
  ],
  [
    'a file that a patch added',
    [{ tool: 'apply_patch', input: { input: `*** Add File: ${file_path}\n+one\n+two\n*** End Patch` } }],
    whole('one\ntwo'),
  ],
  [
    'a file that a patch changed in two places',
    [write('a\nb\nc\nd'), patch('@@\n a\n-b\n+B\n@@\n-d\n+D\n+E')],
    whole('a\nB\nc\nD\nE'),
  ],
  ['a patch that was refused changes nothing', [write('a'), refused(patch('-a\n+b'))], whole('a')],
  ['the text that a shell command printed', [shell(`cat ${file_path}`, 'one\ntwo\n')], whole('one\ntwo')],
  [
    'the lines that shell commands printed, with a patch of them',
    [
      shell("cd /p && sed -n '7,8p' a.ts", 'seven\neight\n'),
      shell('nl -ba a.ts | sed -n 20,20p', '    20\ttwenty', { workdir: '/p' }),
      patch('-eight\n+eight\n+and a half'),
    ],
    parts([7, 'seven\neight\nand a half'], [21, 'twenty']),
  ],
  [
    'a file that a command printed between others, by the lines that it printed before them',
    [
      shell(
        "cat /p/z && printf '\\n--\\n' && cat /p/a.ts && echo == && cat /p/y",
        'zed\n\n--\none\ntwo\n==\nwhy\n',
      ),
    ],
    whole('one\ntwo'),
  ],
  [
    'a file that a command printed after another, by the numbers of its lines',
    [
      shell(
        'nl -ba /p/z | sed -n 7,9p; nl -ba /p/a.ts | sed -n 2,3p',
        '     7\tzed\n     2\ttwo\n     3\tthree\n',
      ),
    ],
    parts([2, 'two\nthree']),
  ],
  [
    'nothing where a line like the heading stands in one of the files',
    [shell('cat /p/a.ts; echo ---; cat /p/z', 'one\n---\ntwo\n---\nzed\n')],
    undefined,
  ],
  [
    'a file that was printed after an empty one',
    [shell('echo 1; cat /p/z; echo 2; cat /p/a.ts', '1\n2\none\n')],
    whole('one'),
  ],
  [
    'nothing where the heading cannot be found',
    [shell('cat /p/a.ts; echo ---; cat /p/z', 'one---\nzed\n')],
    undefined,
  ],
  [
    'nothing where one file goes on with the number at which the other ends',
    [shell('nl -ba /p/a.ts | sed -n 1,1p; nl -ba /p/z | sed -n 2,2p', '     1\tone\n     2\ttwo\n')],
    undefined,
  ],
  [
    'what is left of the first of two files if the output was cut',
    [shell('cat /p/a.ts; echo ---; cat /p/z', 'one\ntwo…7 tokens truncated…r\nfive')],
    parts([1, 'one']),
  ],
  [
    'what a program left of a long output, up to its mark',
    [
      shell(
        `cat ${file_path}`,
        'Exit code: 0\nOutput:\nWarning: truncated output (original token count: 9)\nTotal output lines: 4\n\none\ntwo…7 tokens truncated…r\nfive',
      ),
    ],
    parts([1, 'one']),
  ],
  [
    'a file of one long line that a command printed, as fast as any other',
    [shell(`cat ${file_path}`, 'f(...a),'.repeat(4_000))],
    whole('f(...a),'.repeat(4_000)),
  ],
  [
    'what was known before a command that could not print the file',
    [write('a'), refused(shell(`cat ${file_path}`, 'Exit code: 1\nOutput:\ncat: no such file'))],
    whole('a'),
  ],
  ['an answer that is no text of a file', [write('a'), read('File unchanged since last read.')], whole('a')],
]

it.each(cases)('%s', (_, steps, expected) => {
  expect(runStepsAtOnce(collectLoggedFileTexts(records(steps), null)).get(file_path)).toEqual(expected)
})

it('knows a file by one name, whatever the calls call it', () => {
  const steps = [
    write('a'),
    { tool: 'Edit', input: { file_path: 'x/../a.ts', old_string: 'a', new_string: 'b' } },
  ]
  expect([...runStepsAtOnce(collectLoggedFileTexts(records(steps), '/p'))]).toEqual([['/p/a.ts', whole('b')]])
})

it('a text that is too long for the limit is never cut inside a character', async () => {
  const reader = createLoggedFileReader(
    runStepsAtOnce(collectLoggedFileTexts(records([write('🙂'.repeat(400))]), null)),
    null,
  )
  for (const limit of [600, 603]) {
    const read = await reader.read(file_path, limit)
    expect(read).toMatchObject({ ok: true, isWhole: false })
    expect(read.ok && read.text.isWellFormed() && read.text.endsWith('🙂')).toBe(true)
  }
})
