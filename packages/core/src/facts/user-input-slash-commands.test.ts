import { SessionBuilder } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { createCommandMessage, isUserMessage, readCommandMessage, readUserInputs } from './user-input.ts'

describe('the message of a command', () => {
  const message = (name: string, args: string, contents: string) =>
    createCommandMessage({ name, args }, contents)

  it.each([
    ['src/a.ts "b c"', 'Review it.', '/review src/a.ts "b c"'],
    ['', 'Review all.', '/review'],
    ['x </command-args> y', 'Text', '/review x </command-args> y'],
    [
      'x',
      'Quote </command-contents> and <command-contents>.\n<system-reminder>a</system-reminder>',
      '/review x',
    ],
  ])('counts as the words of the user: name and arguments %j, not the file', (args, contents, typed) => {
    const builder = new SessionBuilder()
    const record = builder.user(message('review', args, contents))
    expect(readUserInputs(record).map(({ kind, text }) => [kind, text])).toEqual([['command', typed]])
    expect(isUserMessage(record)).toBe(true)
  })

  it('can be read again', () => {
    expect(readCommandMessage(message('a', 'b\nc', 'd\ne'))).toEqual({
      name: 'a',
      args: 'b\nc',
      contents: 'd\ne',
    })
    expect(readCommandMessage('/a b')).toBeNull()
  })
})
