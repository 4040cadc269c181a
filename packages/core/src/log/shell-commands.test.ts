import { describe, expect, it } from 'vitest'
import { isLookingCommand, isPassingCommand, normalizeCommand } from './shell-commands.ts'

describe('the normal form of a command', () => {
  it.each([
    ['npm test', 'npm test'],
    ['cd /a/b && npm test', 'npm test'],
    ['cd "/a b" && cd c && npm test', 'npm test'],
    ['npm test 2>&1 | tail -20', 'npm test 2>&1'],
    ['npm test | head -n 5 | tail -3', 'npm test'],
    ['  npm test \n', 'npm test'],
    ['cd /a', 'cd /a'],
    ['npm test | grep tail', 'npm test | grep tail'],
  ])('%j is %j', (command, plain) => {
    expect(normalizeCommand(command)).toBe(plain)
  })
})

describe('a command that only looks', () => {
  it.each([
    'cat build.log',
    'rg -n "a|b && c" src 2>/dev/null | head -20',
    'git -C /repo log --oneline && git status',
    'gh run view 12 --log-failed 2>&1 | tail -5',
    'cd src; ls -la',
    "sed -n '1,20p' a.ts | sort | uniq -c",
  ])('is one: %s', (command) => {
    expect([isLookingCommand(command), isPassingCommand(command)]).toEqual([true, true])
  })

  it.each([
    'npm test | tail',
    'cat a > b',
    "sed -i 's/a/b/' c",
    'find . -delete',
    'cat list | xargs rm',
    'git branch new',
    'ls && npm test',
    'cat-file x',
  ])('is none: %s', (command) => {
    expect(isLookingCommand(command)).toBe(false)
  })
})
