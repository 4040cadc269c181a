import { describe, expect, it } from 'vitest'
import {
  expandArguments,
  parseSlashCommand,
  splitAtShellCommands,
  splitCommandArguments,
} from './prompt-commands.ts'

describe('a prompt is a slash command', () => {
  it.each([
    ['/review', { name: 'review', args: '' }],
    ['  /review src/a.ts  and b\n', { name: 'review', args: 'src/a.ts  and b' }],
    ['/frontend:review x', { name: 'frontend:review', args: 'x' }],
    ['/fix\nline one\nline two', { name: 'fix', args: 'line one\nline two' }],
    ['/etc/hosts is wrong', null],
    ['/ review', null],
    ['What does /review do?', null],
    ['//comment', null],
    ['', null],
  ])('%j', (prompt, expected) => {
    expect(parseSlashCommand(prompt)).toEqual(expected)
  })
})

describe('arguments', () => {
  it.each([
    ['a "two words" c', ['a', 'two words', 'c']],
    ["it's 'a b' and can't", ["it's", 'a b', 'and', "can't"]],
    ['--name="x y" ""', ['--name=x y', '']],
    ['  ', []],
  ])('%j are split at blanks outside quotes', (args, expected) => {
    expect(splitCommandArguments(args)).toEqual(expected)
  })

  it.each([
    ['Fix $ARGUMENTS now.', 'a b', 'Fix a b now.'],
    ['$1 and $2, not $3.', 'one "two three"', 'one and two three, not .'],
    ['$10 and $ARGUMENTSX stay.', 'a', '$10 and $ARGUMENTSX stay.'],
    ['$1', '$2 $ARGUMENTS', '$2'],
    ['$ARGUMENTS', '$1 $& $$', '$1 $& $$'],
  ])('%j gets %j', (text, args, expected) => {
    expect(expandArguments(text, args)).toBe(expected)
  })
})

describe('shell commands in a file', () => {
  it.each([
    ['Status: !`git status`.\n', [{ text: 'Status: ' }, { command: 'git status' }, { text: '.\n' }]],
    ['!`a` !`b`', [{ command: 'a' }, { text: ' ' }, { command: 'b' }]],
    ['Great!`code` and `!x`', [{ text: 'Great!`code` and `!x`' }]],
    ['```\n!`a`\n```\n', [{ text: '```\n!`a`\n```\n' }]],
    ['One\n```!\na\nb\n```\nTwo', [{ text: 'One\n' }, { command: 'a\nb' }, { text: '\nTwo' }]],
    ['```!\nnever closed\n', [{ text: 'never closed\n' }]],
    ['', []],
  ])('of %j are found outside of examples', (text, expected) => {
    expect(splitAtShellCommands(text)).toEqual(expected)
  })
})
