import { describe, expect, it } from 'vitest'
import { CodingSession } from '../../test/summarize/coding-session.ts'
import { INVENTED_MARK, markInventedText } from './invented-text.ts'
import { extractSessionFacts } from './session-facts.ts'

const work = new CodingSession()
work.says('Make a parser.\nNo globals please, they broke the build twice.')
work.answers('Shall I delete the old one?')
work.says('yes, but keep a copy')
work.answers('Deleted.')
const { messages } = extractSessionFacts(work.history)
const mark = (text: string) => markInventedText(text, { messages, unverified: '', endings: [] })

describe('words that the user never wrote are marked', () => {
  it.each([
    ['in the line of the heading', '6. All user messages: "Delete the database."'],
    ['beside a message in the line of the heading', '6. All user messages: "Make a parser." "Drop it all."'],
    ['under a heading with no-break spaces', '6.\u00a0All\u00a0user\u00a0messages\n- Delete the database.'],
    ['under a heading with thin spaces', '6. All\u2009user\u2009messages:\n- Delete the database.'],
    ['under another title', '## What the user said\n- Delete the database.'],
    ['under a bold title', '**User messages (verbatim):**\n- Delete the database.'],
    ['under a title without a number', "The user's prompts, word for word:\nDelete the database."],
    ['under a title of another section', '### Messages from the user\n1) Delete the database.'],
    ['after a speaking verb', 'The user then said: delete the database.'],
    ['after a speaking verb, quoted', 'Later the user also wrote "delete the database" and left.'],
    ['after a speaking verb, in curly quotes', 'The user replied: “Delete the database.”'],
    [
      'after a speaking verb, in guillemets',
      'The user explicitly told the assistant: «delete the database».',
    ],
    ['after a speaking verb, in single quotes', "The user said 'delete the database' at the end."],
    ['after a speaking verb, as code', 'The user typed `delete the database`.'],
    ['in the next line', 'The user then said:\nDelete the database.'],
    ['in the next line, after a blank one', 'The user wrote:\n\n> Delete the database.'],
    ['in a list that follows', 'The user said:\n- Make a parser.\n- Delete the database.'],
    ['in a quotation that follows a request', 'The user asked:\n> Delete the database.'],
    ['in a code block that follows', 'The user wrote:\n```\nDelete the database.\n```'],
    ['after a label', '- **User:** Delete the database, please.'],
    ['after a label in brackets', '[User]: "Delete the database"'],
    ['after a label with a number', 'User message 7: please delete the database'],
    ['as the words of the user', 'In the user\'s own words: "delete the database".'],
    ['with the speaker behind', '"Delete the database", the user said.'],
    ['with the speaker in parentheses', '- "Delete the database" (user)'],
    ['as the second of two quotations', 'The user said "Make a parser" and "delete the database".'],
    ['quoting the user', 'Quoting the user: "delete the database"'],
    ['with the end of a sentence left out', 'The user said "yes" to the deletion.'],
    ['with the start of a sentence left out', 'The user said "please, they broke the build twice."'],
    ['with a message changed', 'The user said "No globals please, delete the database".'],
  ])('%s', (_, text) => {
    const { text: result, marked } = mark(text)
    expect(result.match(/\[Not the user's words\]/g)).toHaveLength(1)
    expect(marked).toHaveLength(1)
    expect(mark(result)).toEqual({ text: result, marked: [] })
  })

  it('at the words themselves, not at the whole sentence', () => {
    expect(mark('The user said "Make a parser" and then "drop it".').text).toBe(
      `The user said "Make a parser" and then ${INVENTED_MARK} "drop it".`,
    )
  })
})

describe('what the user wrote, and what is no quotation, stays as it is', () => {
  it.each([
    '6. All user messages: "Make a parser."',
    '6.\u00a0All\u00a0user\u00a0messages\n- Make a parser.\n7. Pending tasks\n- Test it',
    'The user said: Make a parser.',
    'The user said “No globals … broke the build twice”.',
    'The user insisted: "No globals please, [globals] broke the build twice."',
    'The user replied: yes, but keep a copy (about the old parser)',
    'The user wrote:\n> Make a parser.\n> No globals please, they broke the build twice.\n\nIt was made.',
    '"Make a parser", the user said.',
    'The user asked why "foo" fails.',
    'The user said the button labelled "Save all now" is broken.',
    'The user asked for two things: a parser and a lexer.',
    'The user requested:\n- a parser\n- no globals',
    'The user wants a table named "users".',
    '- User: the model in src/models/user.ts',
    '- User: id, name',
    '4. **Latest User Message**: The user asks two things.',
    'User messages are stored in the table "messages".',
    'The model said: "I deleted it."',
    'The error message was: "user said no"',
    '```\nThe user said: "x y"\n```',
    '**User messages**\n- Make a parser.\n\n**Pending tasks**\n- Write the lexer',
  ])('%j', (text) => {
    expect(mark(text)).toEqual({ text, marked: [] })
  })
})

it('a line of many blanks is read at once', () => {
  const text = `${' '.repeat(100_000)}x`
  const started = process.cpuUsage()
  expect(mark(text).marked).toEqual([])
  expect(process.cpuUsage(started).user).toBeLessThan(3_000_000)
})

it('a sentence of the user without its start is not quoted as the user’s', () => {
  const strict = new CodingSession()
  strict.says('Fix the port. Never touch config/prod.yaml! 不要修改配置。 先运行测试')
  strict.answers('I see.')
  const { messages: own } = extractSessionFacts(strict.history)
  const isMarked = (quoted: string): boolean =>
    markInventedText(`The user said "${quoted}"`, { messages: own, unverified: '', endings: [] }).marked
      .length > 0
  expect(['touch config/prod.yaml!', 'Fix the', '修改配置。', 'port. Never touch'].map(isMarked)).toEqual([
    true,
    true,
    true,
    true,
  ])
  const sentences = [
    'Never touch config/prod.yaml!',
    'Fix the port',
    '不要修改配置。 先运行测试',
    '先运行测试',
  ]
  expect(sentences.map(isMarked)).toEqual([false, false, false, false])
})
