import { describe, expect, it } from 'vitest'
import { CodingSession } from '../../test/summarize/coding-session.ts'
import {
  NOTES_LIMITS as LIMITS,
  readNotesSection as readSection,
  writeNotes as writeRecordNotes,
} from '../../test/summarize/written-notes.ts'
import { runStepsAtOnce } from '../log/work-steps.ts'
import { NOTES_SECTION_TEMPLATES, type NotesSectionName, parseNotes } from './notes-file.ts'
import { createBranchNotesKeeper, type NotesRenderOptions } from './render-notes.ts'

const { countTokens } = LIMITS

const writeNotes = (session: CodingSession, options: Partial<NotesRenderOptions> = {}): string =>
  writeRecordNotes(session.history, options)

const section = (session: CodingSession, name: NotesSectionName): string =>
  readSection(writeNotes(session), name)

/** The result of a call that the user refused with these words. */
const refusal = (words: string): string =>
  `The user doesn't want to proceed with this tool use. The tool use was rejected. To tell you how to proceed, the user said:\n${words}`

describe('files', () => {
  it('are told with what was done to each and what was written last', () => {
    const session = new CodingSession()
    session.says('Go.')
    session.calls(
      'Write',
      { file_path: '/repo/src/a.ts', content: 'export function parse() {}\n' },
      'File created',
    )
    session.edits('/repo/src/b.ts', 'const two = 2')
    session.edits('/repo/src/b.ts', 'const three = 3')
    session.edits('/repo/src/c.ts', 'x', true)
    session.reads('/repo/README.md', 'Hello\n')
    const files = section(session, 'files')
    expect(files).toContain('- /repo/src/b.ts: edited 2 times')
    expect(files).toContain('newest text begins: const three = 3')
    expect(files).toMatch(/- \/repo\/src\/a\.ts: created.*defines parse/)
    expect(files).toContain('A change was tried and not made:\n- /repo/src: c.ts')
    expect(files).toContain('Only read, by folder:\n- /repo: README.md')
  })

  it('have one line under the whole path and the path relative to the working directory', () => {
    const session = new CodingSession()
    const edit = (id: string, path: string): void => {
      const input = { file_path: path, old_string: 'a', new_string: 'b' }
      const cwd = '/home/user/shop'
      session.builder.assistant(id, [{ type: 'tool_use', id, name: 'Edit', input }], { cwd })
      session.builder.result(id, 'ok', { cwd })
    }
    edit('one', '/home/user/shop/src/cart.ts')
    edit('two', 'src/cart.ts')
    edit('three', '/etc/hosts')
    const files = section(session, 'files')
    expect(files).toContain('Paths that are not whole are relative to /home/user/shop.')
    expect(files.match(/cart\.ts/g)).toHaveLength(1)
    expect(files).toContain('- src/cart.ts: edited 2 times')
    expect(files).toContain('- /etc/hosts: edited')
  })

  it('of the project have relative paths, also if a call in a folder below changed them', () => {
    const session = new CodingSession()
    const edit = (id: string, path: string, cwd: string): void => {
      const input = { file_path: path, old_string: 'a', new_string: 'b' }
      session.builder.assistant(id, [{ type: 'tool_use', id, name: 'Edit', input }], { cwd })
      session.builder.result(id, 'ok', { cwd })
    }
    edit('one', '/home/user/shop/src/cart.ts', '/home/user/shop')
    edit('two', '/home/user/shop/docs/cart.md', '/home/user/shop/src')
    edit('three', '/home/user/other/cart.md', '/home/user/shop/src')
    const files = section(session, 'files')
    expect(files).toContain('- docs/cart.md: edited')
    expect(files).toContain('- src/cart.ts: edited')
    expect(files).toContain('- /home/user/other/cart.md: edited')
  })

  it('of a patch are told as created, edited and deleted', () => {
    const session = new CodingSession()
    const patch = '*** Add File: new.ts\n+1\n*** Update File: old.ts\n-1\n+2\n*** Delete File: gone.ts\n'
    session.calls('apply_patch', { input: patch }, 'Done')
    const files = section(session, 'files')
    expect(files).toMatch(/- new\.ts: created/)
    expect(files).toMatch(/- old\.ts: edited/)
    expect(files).toMatch(/- gone\.ts: deleted/)
  })

  it.each([
    ['was refused', 'apply_patch verification failed: Failed to find expected lines in src/cart.ts'],
    ['failed', 'Exit code: 1\nWall time: 0 seconds\nOutput:\n'],
    ['failed, in JSON', '{"output":"no such line","metadata":{"exit_code":1,"duration_seconds":0}}'],
  ])('of a patch that %s are not told as edited', (_, result) => {
    const session = new CodingSession()
    session.calls('apply_patch', { input: '*** Update File: src/cart.ts\n-1\n+2\n' }, result)
    expect(section(session, 'files')).toBe('A change was tried and not made:\n- src: cart.ts')
  })

  it('are listed as deleted, moved or undone if a later command did that', () => {
    const session = new CodingSession()
    for (const name of ['a', 'b', 'c', 'd']) session.edits(`/repo/src/${name}.ts`, '{\n  one: 1\n}')
    session.reads('/repo/src/old.ts', 'x')
    session.runs('cd /repo && rm -f src/a.ts src/old.ts && git mv src/b.ts src/e.ts', 'ok')
    session.runs('git -C /repo checkout -- src/c.ts', 'ok')
    session.runs('rm /repo/src/d.ts', 'no such file', true)
    const files = section(session, 'files')
    expect(files).toContain('- /repo/src/a.ts: edited, last 2023-11-14 22:13; since then deleted by `rm -f')
    expect(files).toMatch(/- \/repo\/src\/old\.ts: read, .*since then deleted by/)
    expect(files).toMatch(/- \/repo\/src\/b\.ts: .*since then moved to \/repo\/src\/e\.ts by `git mv/)
    expect(files).toMatch(/- \/repo\/src\/e\.ts: moved from \/repo\/src\/b\.ts/)
    expect(files).toMatch(/- \/repo\/src\/c\.ts: .*since then undone by `git -C \/repo checkout/)
    expect(files).toMatch(/- \/repo\/src\/d\.ts: edited, last [^;]*; newest text begins: one: 1\n/)
  })

  it('are only perhaps undone after a commit, and reading an undone file brings no edit back', () => {
    const session = new CodingSession()
    for (const name of ['a', 'b']) session.edits(`/repo/src/${name}.ts`, 'one')
    session.runs('git -C /repo commit -am done', 'ok')
    session.edits('/repo/src/b.ts', 'two')
    session.runs('git -C /repo checkout .', 'ok')
    session.reads('/repo/src/b.ts', 'one')
    const files = section(session, 'files')
    expect(files).toMatch(/- \/repo\/src\/a\.ts: .*since then perhaps undone by `git -C \/repo checkout/)
    expect(files).toMatch(/- \/repo\/src\/b\.ts: .*since then undone by `git -C \/repo checkout/)
  })

  it('are all named, by folder where there are too many for a line each', () => {
    const session = new CodingSession()
    const paths = Array.from({ length: 300 }, (_, index) => `/repo/part-${index % 7}/file-${index}.ts`)
    for (const path of paths) session.edits(path, 'const value = 1')
    const files = section(session, 'files')
    expect(countTokens(files)).toBeLessThanOrEqual(2_000)
    expect(paths.filter((path) => !files.includes(path.split('/').at(-1) ?? ''))).toEqual([])
    expect(files).toMatch(/^- \/repo\/part-3: file-\d+\.ts, file-/m)
  })
})

describe('corrections by the user', () => {
  it('are known by where they stand: with a refusal, after one, and after an interruption, with what stood before', () => {
    const session = new CodingSession()
    session.says('Clean up.')
    session.answers('I will delete the old folder.')
    session.calls('Bash', { command: 'rm -rf old' }, refusal('keep them for now'), true)
    session.says('[Request interrupted by user]')
    session.says('erst die Tests')
    session.says('No, that was only a remark.')
    expect(section(session, 'errors')).toBe(
      [
        'Corrections by the user:',
        '- After Bash `rm -rf old`:\n> keep them for now',
        '- After Bash `rm -rf old`:\n> erst die Tests',
      ]
        .join('\n\n')
        .replace(':\n\n', ':\n'),
    )
  })

  it('do not follow a refusal after which the model went on with other calls', () => {
    const session = new CodingSession()
    session.calls('Bash', { command: 'rm -rf old' }, "The user doesn't want to proceed.", true)
    session.runs('ls', 'old')
    session.says('Now the docs.')
    expect(section(session, 'errors')).toBe('')
  })

  it('mark what the model had decided in the turn before them', () => {
    const session = new CodingSession()
    session.says('缓存太慢，请修复')
    session.answers('我用 Redis 存储会话。')
    session.edits('/repo/cache.ts', 'x')
    session.says('[Request interrupted by user]')
    session.says('用 SQLite')
    session.answers('我改用 SQLite。')
    session.edits('/repo/cache.ts', 'y')
    const task = section(session, 'task')
    expect(task).toContain('- before a change of cache.ts:\n> 我改用 SQLite。')
    expect(task).toContain(
      '- before a change of cache.ts, in a turn that the user corrected:\n> 我用 Redis 存储会话。',
    )
    expect(section(session, 'errors')).toContain('- After "我用 Redis 存储会话。":\n> 用 SQLite')
    expect(section(session, 'title')).toBe('缓存太慢，请修复')
  })

  it('are never words of the program that runs the model', () => {
    const session = new CodingSession()
    session.says('Plan the sharing.')
    const words =
      'The user wants to clarify these questions.\n    This means they may have additional information.\n\n    Questions asked:\n- "Who may share?"\n  (No answer provided)'
    session.calls('AskUserQuestion', { questions: [{ question: 'Who may share?' }] }, refusal(words), true)
    expect(section(session, 'errors')).toBe('')
    expect(writeNotes(session)).not.toContain('wants to clarify')
  })

  it('that were typed again and again are quoted once, and push out no other one', () => {
    const session = new CodingSession()
    const corrects = (text: string): void => {
      session.says('[Request interrupted by user]')
      session.says(text)
    }
    corrects('No, the cart comes first.')
    for (let index = 0; index < 400; index += 1) corrects(`Wait, use tool ${index % 3}. ${'x'.repeat(200)}`)
    const errors = section(session, 'errors')
    expect(errors).toContain('> No, the cart comes first.')
    expect(errors.match(/^> Wait, use tool/gm)).toHaveLength(3)
    expect(errors).not.toContain('older ones')
  })
})

describe('what the model decided', () => {
  const decide = (session: CodingSession, part: number): void => {
    session.answers(
      `Teil ${part}: die Preise bleiben ganze Zahlen. ${'Das ist so gewollt. '.repeat(50)}Ende ${part}.`,
    )
    session.edits(`/repo/src/${part}.ts`, 'x')
  }
  const listParts = (text: string): readonly number[] =>
    [...text.matchAll(/Teil (\d+):/g)].map(([, part]) => Number(part))

  it('before each compaction stays, however much was decided since', () => {
    const session = new CodingSession()
    for (let part = 0; part < 200; part += 1) {
      decide(session, part)
      if (part % 40 === 39) session.compacts('Short.')
    }
    const parts = listParts(section(session, 'task'))
    expect([0, 1, 2, 3, 4].filter((span) => !parts.some((part) => Math.floor(part / 40) === span))).toEqual(
      [],
    )
    expect(parts.at(-1)).toBe(199)
  })

  it('stays where the user asked for very much, in few tokens too', () => {
    const session = new CodingSession()
    for (let part = 0; part < 60; part += 1) {
      session.says(`Bitte Teil ${part}. ${'Sehr ausführlich erklärt. '.repeat(40)}`)
      session.answers(`Entscheidung ${part}: Cent als ganze Zahl.`)
      session.edits(`/repo/src/${part}.ts`, 'x')
    }
    const all = section(session, 'task')
    expect(all.match(/> Entscheidung \d+: Cent als ganze Zahl\./g)).toHaveLength(60)
    const few = { sectionTokens: 200, decisionTokens: 350, totalTokens: 1_200 }
    const short = readSection(writeNotes(session, few), 'task')
    expect(short.match(/> Entscheidung \d+/g)?.length).toBeGreaterThan(8)
  })

  it('is cut as fast where it has no sentences, such as a long row of dots', () => {
    const session = new CodingSession()
    session.says('Go on.')
    session.answers('.'.repeat(60_000))
    session.says('And then?')
    session.answers('Done.')
    expect(section(session, 'task')).toContain('> ......')
  })

  it('is cut between sentences, and its beginning and end stay', () => {
    const session = new CodingSession()
    for (let part = 0; part < 30; part += 1) decide(session, part)
    const task = section(session, 'task')
    expect(task).toContain('> Teil 29: die Preise bleiben ganze Zahlen. Das ist so gewollt.')
    expect(task).toContain('> […]\n> Das ist so gewollt.')
    expect(task).toContain('Das ist so gewollt. Ende 29.')
    expect(task).toMatch(/^… \d+ more are in the transcript$/m)
  })
})

describe('the rest of the notes', () => {
  it('has title, first request, answered questions, the plan, decisions, findings, answers and the steps', () => {
    const session = new CodingSession()
    session.says('Please move the session store to SQLite. It is too slow.')
    session.calls('ExitPlanMode', { plan: '# Plan\n1. Add a schema' }, 'User has approved your plan.')
    const questions = [{ question: 'Which driver?', options: [{ label: 'native' }, { label: 'wasm' }] }]
    session.calls(
      'AskUserQuestion',
      { questions },
      'User has answered your questions: "Which driver?"="native".',
    )
    session.runs('npm test', 'no such table', true)
    session.answers('The table has no index.')
    session.answers('The JSON export stays, since two tools read it.')
    session.edits('/repo/store.ts', 'x')
    session.runs('git commit -m "Store sessions in SQLite"', '[main 1a2b3c4] Store')
    session.answers('The store is in SQLite now: 12 ms instead of 400 ms.')
    session.says('Good. Now the docs.')
    const notes = writeNotes(session)
    expect(readSection(notes, 'title')).toBe('Please move the session store to SQLite')
    expect(readSection(notes, 'task')).toContain('First request:\n> Please move the session store')
    expect(readSection(notes, 'task')).toContain('> # Plan')
    expect(readSection(notes, 'task')).toContain('- The user, asked "Which driver?": "native"')
    expect(readSection(notes, 'task')).toContain(
      [
        'Decisions and findings, in the words of the model, oldest first:',
        '- after `npm test` failed:\n> The table has no index.',
        '- before a change of store.ts:\n> The JSON export stays, since two tools read it.',
      ].join('\n'),
    )
    expect(readSection(notes, 'results')).toContain('> The store is in SQLite now: 12 ms instead of 400 ms.')
    expect(readSection(notes, 'worklog')).toContain(
      'user: "Please move the session store to SQLite. It is too slow." → changed store.ts; 2 commands (1 failed); committed "Store sessions in SQLite"',
    )
  })

  it.each([
    ['hi', 'fix the parser', 'fix the parser'],
    ['Plan the move to SQLite.', 'yes', 'Plan the move to SQLite'],
    ['Guten Tag', 'Bitte den Warenkorb reparieren', 'Bitte den Warenkorb reparieren'],
    ['你好', '修复购物车的测试。然后提交。', '修复购物车的测试'],
    ['Umbau\n\nSetze diesen Plan um:\n- Den Speicher nach SQLite', '了解', 'Den Speicher nach SQLite'],
  ])('takes a title from the first request that the model worked on: %s', (first, second, title) => {
    const session = new CodingSession()
    session.says(first)
    session.answers('What shall I do?')
    session.says(second)
    session.runs('ls', 'a')
    session.says('Something else, at greater length than before.')
    session.runs('ls', 'a')
    expect(section(session, 'title')).toBe(title)
  })

  it('cuts a long plan further where many requests share its section', () => {
    const session = new CodingSession()
    const plan = `# Plan\n${'Do one thing. '.repeat(300)}`
    session.calls('ExitPlanMode', { plan }, 'User has approved your plan.')
    session.says('Build the importer.')
    const readPlan = (): number =>
      /> # Plan[\s\S]*?(?=\n\n|$)/.exec(section(session, 'task'))?.[0].length ?? 0
    expect(readPlan()).toBeGreaterThan(3_500)
    for (let index = 0; index < 40; index += 1)
      session.says(`Please also import the table number ${index} of the old shop.`)
    expect(readPlan()).toBeLessThan(1_300)
    expect(section(session, 'task')).toContain('table number 0 of the old shop')
  })

  it('says where the only request is', () => {
    const session = new CodingSession()
    session.says('Build the importer.')
    expect(section(session, 'task')).toBe('First request:\nIt is the latest instruction, see Current state.')
  })

  it('has an answer that was typed as a note once', () => {
    const session = new CodingSession()
    const input = { questions: [{ question: 'Share at once?', options: [{ label: 'Yes' }] }] }
    const [question, answer] = ['Share at once?', 'what speaks against it?']
    session.builder.assistant('msg', [{ type: 'tool_use', id: 'ask', name: 'AskUserQuestion', input }])
    session.builder.result('ask', `User has answered your questions: "${question}"="${answer}".`, {
      toolUseResult: { answers: { [question]: answer }, annotations: { [question]: { notes: answer } } },
    })
    expect(section(session, 'task')).toContain(`- The user, asked "${question}": "${answer}"`)
  })

  it('for a summary names neither requests nor failing commands again, which are listed beside it', () => {
    const session = new CodingSession()
    session.says('Make the totals right in every currency of the shop.')
    session.runs('make totals', 'broken: 3 totals are wrong', true)
    session.says('Also keep the old totals.\nThey are needed for the audit.')
    const [file, summary] = [writeNotes(session), writeNotes(session, { use: 'summary' })]
    expect(file).toContain('Make the totals right in every currency')
    expect(file).toContain('make totals')
    expect(summary).not.toContain('First request')
    expect(readSection(summary, 'errors')).not.toContain('make totals')
    expect(readSection(summary, 'state')).toContain(
      '"Also keep the old totals. They are needed for the audit."',
    )
  })

  it('leaves out subagents, and says which record it covers', () => {
    const notes = createBranchNotesKeeper()
    const limits = { section: 2_000, decisions: 3_500, total: 12_000, countTokens }
    const update = ({ builder: { session } }: CodingSession) =>
      runStepsAtOnce(notes.update({ session, view: { branch: session.branch } }, limits))
    const session = new CodingSession()
    expect(update(session).coveredUuid).toBeNull()
    session.says('Go.')
    const last = session.builder.answer('Gone.')
    session.builder.user('Said by a subagent.', { isSidechain: true })
    expect(update(session)).toMatchObject({ coveredUuid: last.uuid })
    expect(update(session).text).not.toContain('subagent')
  })

  it('uses the headings of a template, keeps its own text and adds what it lacks', () => {
    const session = new CodingSession()
    session.says('Go.')
    const template = '# Mine\n_Hint._\n\n# current state\n_Now._\n\nAlways in English.\n'
    const notes = parseNotes(writeNotes(session, { template }))
    expect(notes.slice(0, 2).map(({ heading, hint }) => `${heading}: ${hint}`)).toEqual([
      'Mine: Hint.',
      'current state: Now.',
    ])
    expect(notes[1]?.body).toMatch(/^Always in English\.\n\nLatest instruction:\n> Go\./)
    expect(notes.map(({ heading }) => heading)).toContain(NOTES_SECTION_TEMPLATES.worklog.heading)
  })

  it('tells what an earlier part was about if only its summary is in the log', () => {
    const session = new CodingSession()
    session.builder.user('We wrote the parser.', { isCompactSummary: true })
    session.says('Go on.')
    expect(section(session, 'system')).toContain('not in this log:\n> We wrote the parser.')
  })
})

describe('what does not fit', () => {
  it('goes oldest first and is counted, but never what still fails', () => {
    const session = new CodingSession()
    for (let index = 0; index < 200; index += 1)
      session.runs(`make part-${index} --with ${'x'.repeat(60)}`, 'done')
    for (let index = 0; index < 60; index += 1)
      session.runs(`check part-${index} ${'z'.repeat(99)}`, `broken ${'y'.repeat(200)}`, true)
    const notes = writeNotes(session)
    const workflow = readSection(notes, 'workflow')
    expect(workflow).toContain('`make part-199 ')
    expect(workflow).not.toContain('`make part-0 ')
    expect(workflow).toMatch(/\n… \d+ older ones are in the transcript$/)
    expect(countTokens(workflow)).toBeLessThanOrEqual(2_000)
    const errors = readSection(notes, 'errors')
    for (let index = 0; index < 60; index += 1)
      expect(errors).toContain(`- \`check part-${index} ${'z'.repeat(99)}\` → failed`)
  })

  it.each([12_000, 5_000, 2_000, 800])('fits into any number of tokens: %d', (totalTokens) => {
    const session = new CodingSession()
    for (let index = 0; index < 300; index += 1) {
      session.says(`Now do part ${index} of the work. ${'It is long. '.repeat(20)}`)
      session.edits(`/repo/part-${index % 50}/file-${index}.ts`, `const value = ${index}`)
      session.runs(`check part-${index} ${'x'.repeat(90)}`, 'broken', index % 3 > 0)
      session.answers(
        `I decided to use ${index}, because the cause was in part ${index}. ${'Yes. '.repeat(60)}`,
      )
    }
    session.lists(Array.from({ length: 40 }, (_, index) => ({ content: `Part ${index}`, status: 'pending' })))
    expect(countTokens(writeNotes(session, { totalTokens }))).toBeLessThanOrEqual(totalTokens)
  })

  it('is left out even of what still fails, and said, where the whole file has no room for it', () => {
    const session = new CodingSession()
    for (let index = 0; index < 900; index += 1)
      session.runs(`check part-${index} ${'x'.repeat(90)}`, 'broken', true)
    session.says('What is left?')
    const notes = writeNotes(session)
    expect(countTokens(notes)).toBeLessThanOrEqual(12_000)
    expect(notes).toContain('> What is left?')
    expect(readSection(notes, 'errors')).toMatch(/`check part-899 .*\n/)
    expect(readSection(notes, 'errors')).toMatch(/… \d+ older ones are in the transcript/)
  })
})
