/** What a client removed leaves the texts of ours that quote it, and nothing else does. */

import type { ClientMessage } from '@tidemark/wire/providers/client-request'
import { describe, expect, it } from 'vitest'
import { listInputParts } from '../session/conversation-parts.ts'
import { createTextRemover, listShortenedTexts } from './removed-texts.ts'

/** Returns a summary as it is after the client has changed its messages. */
function change(before: readonly ClientMessage[], after: readonly ClientMessage[], summary: string): string {
  const changes = listShortenedTexts(listInputParts(before), listInputParts(after))
  const changeText = createTextRemover(changes, summary, after)
  return changeText === null ? summary : changeText(summary)
}

function talk(...texts: readonly string[]): readonly ClientMessage[] {
  return texts.map((content, at) => ({ role: at % 2 === 0 ? 'user' : 'assistant', content }))
}

function call(...commands: readonly string[]): readonly ClientMessage[] {
  const content = commands.map((command, at) => ({
    ...{ type: 'tool_use', id: `toolu_${at}`, name: 'Bash' },
    input: { command },
  }))
  return [{ role: 'assistant', content }]
}

const LONG = Array.from({ length: 60 }, (_, at) => `word${String.fromCharCode(97 + (at % 26), 97 + at / 26)}`)

describe('a summary that quotes a message', () => {
  it.each([
    [
      'a value that was masked',
      'The PIN is 4821.',
      'The PIN is ****.',
      'PIN 4821, twice: 4821',
      'PIN ****, twice: ****',
    ],
    ['a value that was replaced', 'Use port 8000.', 'Use port 9000.', 'port 8000', 'port 9000'],
    [
      'what was cut off',
      'Fix it. Password: correct horse',
      'Fix it.',
      'by correct horse',
      'by [removed] [removed]',
    ],
    [
      'parts of the value',
      'key tok-7Hq2-8831',
      'key gone',
      'it has 7Hq2 and 8831',
      'it has [removed] and [removed]',
    ],
    [
      'other words of the value',
      '{"user":"anna","pass":"tiger"}',
      '{"user":"anna","pass":"x"}',
      'anna/tiger',
      'anna/x',
    ],
    [
      'a value without spaces around it',
      '密码是老虎豆。',
      '密码是[删除]。',
      '用户的密码是老虎豆吗',
      '用户的密码是[删除]吗',
    ],
    [
      'a key in a long cut',
      `${LONG.join(' ')} AKx93jdk20`,
      '[cleared]',
      'AKx93jdk20 in wordaa',
      '[removed] in wordaa',
    ],
  ])('loses %s', (_, before, after, summary, expected) => {
    expect(change(talk(before), talk(after), summary)).toBe(expected)
  })

  it('loses the input of a call that was redacted', () => {
    expect(change(call('login tiger'), call('login [redacted]'), 'with tiger')).toBe('with [redacted]')
  })

  it.each([
    ['words of a long cut', talk(LONG.join(' ')), talk('[cleared]'), 'wordaa wordab wordbz'],
    ['what was cut from a call', call('make build release'), call('make bui'), 'make build release'],
    ['what has one placeholder', call('make it', 'go on', 'run'), call('[]', '[]', '[]'), 'make it, run'],
    [
      'words that other messages have',
      talk('Use tiger.', 'I use tiger.'),
      talk('Use it.', 'I use tiger.'),
      'tiger',
    ],
    ['words that contain a removed one', talk('the fact', 'so'), talk('the', 'so'), 'a factory'],
    ['messages that were dropped', talk('First tiger.', 'Yes.', 'Go on.'), talk('Go on.'), 'First tiger'],
    ['short words', talk('It is in CI.'), talk('It is in it.'), 'CI'],
  ])('keeps %s', (_, before, after, summary) => {
    expect(change(before, after, summary)).toBe(summary)
  })
})
