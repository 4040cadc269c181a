import { describe, expect, it } from 'vitest'
import { CodingSession } from '../../test/summarize/coding-session.ts'
import { createReceipt } from '../../test/summarize/summary-rules.ts'
import type { ContextEntry } from '../context/context-entry.ts'

const rules = {
  carried: [{ kind: 'todos', key: 'todos', more: 1 }],
}

describe('the receipt of a compaction', () => {
  function compacted(summary: string) {
    const work = new CodingSession()
    work.says('Rename parseQuery.')
    work.edits('/app/src/parser.ts', 'readQuery(rawText)')
    work.runs('npm test', 'tokenError at 3', true)
    work.says('Now the lexer.')
    work.answers('Done with parseQuery.')
    const before = work.builder.view.entries.toArray()
    work.compacts(summary)
    const after = work.builder.view.entries.toArray()
    return { work, before, receipt: createReceipt({ ...rules, before, after, summarised: before }) }
  }

  it('names what is no longer mentioned, with the record that contains it', () => {
    const { before, receipt } = compacted(
      'Summary:\nparseQuery was renamed to readQuery.\nUser: Now the lexer.',
    )
    const uuid = (at: number): string => before[at]?.record.uuid ?? '?'
    expect(receipt.lost).toEqual({
      files: [{ text: '/app/src/parser.ts', uuid: uuid(1) }],
      userMessages: [{ text: 'Rename parseQuery.', uuid: uuid(0), characters: 18 }],
      errors: [{ text: 'tokenError at 3', uuid: uuid(4), command: 'npm test', isSettled: false }],
      identifiers: [
        { text: 'rawText', uuid: uuid(1) },
        { text: 'tokenError', uuid: uuid(4) },
      ],
      moreIdentifiers: 0,
    })
  })

  it.each<[string, string, boolean]>([
    ['its whole path', 'see /app/src/parser.ts.', false],
    ['its path from the working directory', 'see src/parser.ts.', false],
    ['its name in the line of its folder', '- src: lexer.ts, parser.ts', false],
    ['its name in the line of another folder', '- test: lexer.ts, parser.ts', true],
    ['its path from another folder', 'see lib/src/parser.ts.', true],
    ['its name alone', 'see parser.ts.', true],
  ])('tells by %s whether the path of a file is lost', (_, text, isLost) => {
    const work = new CodingSession()
    work.edits('/app/src/parser.ts', 'readQuery(rawText)')
    const inFolder = (): readonly ContextEntry[] =>
      work.builder.view.entries
        .toArray()
        .map((entry) => ({ ...entry, record: { ...entry.record, cwd: '/app' } }))
    const before = inFolder()
    work.compacts(`Summary:\n${text}`)
    const { lost } = createReceipt({ ...rules, before, after: inFolder(), summarised: before })
    expect(lost.files).toHaveLength(isLost ? 1 : 0)
  })

  it('names an error once, however many commands failed with it', () => {
    const work = new CodingSession()
    for (const command of ['npm test', 'npm run check', 'make']) work.runs(command, 'tokenError at 3', true)
    const before = work.builder.view.entries.toArray()
    work.compacts('Summary:\nNothing.')
    const after = work.builder.view.entries.toArray()
    const { lost } = createReceipt({ ...rules, before, after, summarised: before })
    expect(lost.errors.map(({ text }) => text)).toEqual(['tokenError at 3'])
  })

  it('names what only an earlier summary still mentioned', () => {
    const work = new CodingSession()
    work.says('Amounts are in cents.')
    work.edits('/app/src/parser.ts', 'readQuery(rawText)')
    const history = work.builder.view.entries.toArray().map(({ record }) => record)
    work.compacts('Summary:\nUser: Amounts are in cents.')
    const before = work.builder.view.entries.toArray()
    work.compacts('Summary:\nNothing.')
    const after = work.builder.view.entries.toArray()
    const { lost } = createReceipt({ ...rules, before, after, summarised: before, history })
    expect(lost).toMatchObject({
      files: [],
      userMessages: [{ text: 'Amounts are in cents.', uuid: history[0]?.uuid }],
    })
  })

  it('names a message of the user that was cut, with the number of characters that are gone', () => {
    const work = new CodingSession()
    const text = `${'a'.repeat(300)}${'b'.repeat(400)}${'c'.repeat(300)}`
    const uuid = work.says(text)
    work.answers('Done.')
    const before = work.builder.view.entries.toArray()
    const history = before.map(({ record }) => record)
    work.compacts(`Summary:\n${'a'.repeat(300)}\n[…]\n${'c'.repeat(300)}`)
    const cut = work.builder.view.entries.toArray()
    expect(createReceipt({ ...rules, before, after: cut, summarised: before }).lost.userMessages).toEqual([
      { text, uuid, characters: 400 },
    ])
    work.compacts(`Summary:\n${'a'.repeat(300)}\n[…]\n${'c'.repeat(100)}`)
    const after = work.builder.view.entries.toArray()
    const again = { ...rules, before: cut, summarised: cut, history }
    expect(createReceipt({ ...again, after }).lost.userMessages).toEqual([{ text, uuid, characters: 600 }])
    expect(createReceipt({ ...again, after: cut }).lost.userMessages).toEqual([])
  })

  it('names words of the user that a tool result or a queue held', () => {
    const work = new CodingSession()
    const refused =
      "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\nnot on main"
    work.says('Push it.')
    work.runs('git push', refused, true)
    work.calls('AskUserQuestion', { questions: [{ question: 'Which branch?' }] }, 'the one called next')
    work.builder.attachment({ type: 'queued_command', prompt: 'and tag it as well' })
    work.builder.user('<task-notification>all done</task-notification>')
    work.answers('Done.')
    const before = work.builder.view.entries.toArray()
    work.compacts('Summary:\nPush it.')
    const after = work.builder.view.entries.toArray()
    const { lost } = createReceipt({ ...rules, before, after, summarised: before })
    expect(lost.userMessages.map(({ text }) => text)).toEqual([
      'not on main',
      'Asked: "Which branch?"\nAnswered: the one called next',
      'and tag it as well',
    ])
    expect(lost.errors).toEqual([])
  })

  it('names a short reply that the new context has only as part of other words', () => {
    const work = new CodingSession()
    work.answers('Shall I push?')
    const uuid = work.says('no')
    work.calls('ask_user', { question: 'Port?' }, 'It is "80".')
    const before = work.builder.view.entries.toArray()
    work.compacts('Summary:\nNothing is known, and 80 tests pass.')
    const after = work.builder.view.entries.toArray()
    const { lost } = createReceipt({ ...rules, before, after, summarised: before })
    expect(lost.userMessages.map(({ characters }) => characters)).toEqual([2, 11])
    expect(lost.userMessages[0]?.uuid).toBe(uuid)
    expect(createReceipt({ ...rules, before, after: before, summarised: [] }).lost.userMessages).toEqual([])
  })

  describe('words of the user in a summary that', () => {
    function losses(summary: string, attached: object | null = null): readonly string[] {
      const work = new CodingSession()
      work.says('Put the footer below the list of sponsors.Keep\nthe banner as it is for now.')
      const questions = [
        { question: 'What happens to the sponsor bar on each page?' },
        { question: 'Which prompt is in the picture?' },
      ]
      const answered = `User has answered your questions: "${questions[0]?.question}"="Retire it, footer only", "${questions[1]?.question}"="Ours". You can now continue`
      work.calls('AskUserQuestion', { questions }, answered)
      const before = work.builder.view.entries.toArray()
      work.compacts(`Summary:\n${summary}`)
      if (attached !== null) work.builder.attachment({ type: 'of_another_program', ...attached })
      const after = work.builder.view.entries.toArray()
      const { lost } = createReceipt({ ...rules, before, after, summarised: before })
      return lost.userMessages.map(({ text, characters }) => `${characters} of ${text.split('\n').at(-1)}`)
    }
    const prompt = 'Put the footer below the list of sponsors. Keep the banner as it is for now.'

    it.each<[string, string, readonly string[]]>([
      ['wraps them anew are not lost', `- "${prompt}"\nRetire it, footer only\nOurs`, []],
      [
        'quotes an answer are not lost, and each answer counts alone',
        `- "${prompt}"\n- sponsor bar → **"Retire it,\n  footer only"**; "Ours" is the picture`,
        ['4 of Answered: Ours'],
      ],
      [
        'has an answer only inside of other words are lost',
        `- "${prompt}"\nWe do not Retire it, footer only the bar.\nOurs`,
        ['22 of Answered: Retire it, footer only'],
      ],
      [
        'cuts their middle are lost in part, white space counted',
        'Put the footer below the list […] the\n  banner as it is for now.\nRetire it, footer only\nOurs',
        ['16 of the banner as it is for now.'],
      ],
    ])('%s', (_, summary, expected) => {
      expect(losses(summary)).toEqual(expected)
    })

    it('leaves them to an attachment of another program are not lost', () => {
      const given = { files: [{ content: 'Retire it, footer only\nOurs' }] }
      expect(losses(`- "${prompt}"`, given)).toEqual([])
    })
  })

  it('lists what went, what stayed and what was carried', () => {
    const { before, receipt } = compacted('Summary:')
    const uuids = before.map(({ record }) => record.uuid)
    expect([receipt.summarised, receipt.kept, receipt.carried, receipt.retrievable]).toEqual([
      uuids,
      [],
      [{ kind: 'todos', key: 'todos' }],
      uuids,
    ])
  })

  it('counts as retrievable what the model was shown, and nothing that was hidden from it', () => {
    const work = new CodingSession()
    const uuid = work.says('Make a parser.')
    work.builder.notice('hidden')
    const before = work.builder.view.entries.toArray()
    work.compacts('Summary:')
    const after = work.builder.view.entries.toArray()
    expect(before.length).toBe(2)
    expect(createReceipt({ ...rules, before, after, summarised: before.slice(0, 1) }).retrievable).toEqual([
      uuid,
    ])
  })

  it('counts nothing as lost that a kept record still says, secrets in it or not', () => {
    const work = new CodingSession()
    work.says('Use password=hunter2hunter2 in parseQuery.')
    const before = work.builder.view.entries.toArray()
    expect(createReceipt({ ...rules, before, after: before, summarised: [] })).toEqual({
      summarised: [],
      kept: [before[0]?.record.uuid],
      carried: [{ kind: 'todos', key: 'todos' }],
      lost: { files: [], userMessages: [], errors: [], identifiers: [], moreIdentifiers: 0 },
      unfit: [],
      unpinned: [],
      retrievable: [],
    })
  })

  it('names the weightiest identifiers and counts the rest', () => {
    const work = new CodingSession()
    work.answers(
      Array.from({ length: 230 }, (_, at) => `name_${String.fromCharCode(97 + (at % 26))}_${at}`).join(' '),
    )
    const before = work.builder.view.entries.toArray()
    const { lost } = createReceipt({ ...rules, before, after: [], summarised: before })
    expect([lost.identifiers.length, lost.moreIdentifiers]).toEqual([200, 30])
  })

  it('a name that only an earlier summary mentions is no fact of the session', () => {
    const work = new CodingSession()
    work.says('Rename parse_query.')
    work.answers('Done with parse_query.')
    const first = work.builder.view.entries.toArray()
    work.compacts('Summary:\nparse_query was renamed. Last call: Read {"file_path":"a.ts"}')
    const before = work.builder.view.entries.toArray()
    const history = first.map(({ record }) => record)
    const { lost } = createReceipt({ ...rules, before, after: [], summarised: before, history })
    expect(lost.identifiers.map(({ text }) => text)).toEqual(['parse_query'])
  })

  it('a number with separators is no name', () => {
    const work = new CodingSession()
    work.answers('The largest is 2_147_483_647 in max_int.')
    const before = work.builder.view.entries.toArray()
    const { lost } = createReceipt({ ...rules, before, after: [], summarised: before })
    expect(lost.identifiers.map(({ text }) => text)).toEqual(['max_int'])
  })
})
