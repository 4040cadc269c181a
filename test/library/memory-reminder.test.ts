/** The reminder in front of the conversation: instructions of user and project, git status, other context. */
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { memoryFiles, user } from 'tidemark'
import { describe, expect, it } from 'vitest'
import { countCopies, openMemoryWorld } from '../support/memory-world.ts'

const CODE = { 'src/a.ts': 'a', 'src/deep/b.ts': 'b', 'lib/c.ts': 'c', 'top.ts': 't' }

/** The texts of the first message of a request. */
function firstTexts(body: string | undefined): readonly string[] {
  const { messages } = JSON.parse(body ?? '{}')
  return messages[0].content.map(({ text }: { text: string }) => text)
}

describe('the reminder in front of the conversation', () => {
  it('has the files of user and project, nearest last, each under its heading, before the first prompt', async () => {
    const world = await openMemoryWorld({ 'CLAUDE.md': 'Root rule.', 'CLAUDE.local.md': 'Mine.', ...CODE })
    mkdirSync(join(world.home, '.claude'), { recursive: true })
    writeFileSync(join(world.home, '.claude', 'CLAUDE.md'), 'User rule.')
    world.write('src/AGENTS.md', 'Nearer rule.')
    const { cwd, home } = world
    const context = [
      { heading: 'Selected in the editor', read: () => 'line 3' },
      { heading: 'Nothing', read: () => null },
    ]
    const carriers = memoryFiles({ cwd: join(cwd, 'src'), project: cwd, home, context })
    const session = await world.tide.open('b', { carriers })
    await session.run('Say: hello.').outcome
    const [reminder, prompt, ...rest] = firstTexts(world.bodies.at(-1))
    expect([prompt, rest]).toEqual(['Say: hello.', []])
    expect(reminder?.split('\n')).toEqual([
      '<system-reminder>',
      'Context of this session. It may or may not bear on the task; use what does.',
      `# Instructions of the user: ${home}/.claude/CLAUDE.md`,
      'User rule.',
      '',
      `# Instructions of the project: ${cwd}/CLAUDE.md`,
      'Root rule.',
      '',
      `# Instructions of the project: ${cwd}/CLAUDE.local.md`,
      'Mine.',
      '',
      `# Instructions of the project: ${cwd}/src/AGENTS.md`,
      'Nearer rule.',
      '',
      '# Selected in the editor',
      'line 3',
      '</system-reminder>',
    ])
  })

  it('stands in front of the first message in a loop of one’s own too, and append returns only the caller’s ids', async () => {
    const world = await openMemoryWorld({ 'AGENTS.md': 'Root rule.' })
    const session = await world.tide.open('own')
    expect(await session.append(user('Hello.'), user('And more.'))).toHaveLength(2)
    const next = await session.next()
    if (!next.ok) throw new Error(next.message)
    const [reminder, ...rest] = firstTexts(next.text)
    expect(reminder).toContain('Root rule.')
    expect(rest).toEqual(['Hello.', 'And more.'])
  })

  it('is not there if there is nothing to say', async () => {
    const world = await openMemoryWorld({ 'CLAUDE.md': '  \n', ...CODE })
    const [body = ''] = await world.run('Say: hello.')
    expect(body).not.toContain('system-reminder')
  })

  it('keeps its bytes when a file changes: the change, a new file and the end of one are appended, each once', async () => {
    const world = await openMemoryWorld({ 'CLAUDE.md': 'First version.', 'CLAUDE.local.md': 'Goes.' })
    const [before = ''] = await world.run('Say: one.')
    world.write('CLAUDE.md', 'Second version.')
    world.write('AGENTS.md', 'New file.')
    rmSync(join(world.cwd, 'CLAUDE.local.md'))
    const [changed = ''] = await world.run('Say: two.')
    expect(firstTexts(changed)[0]).toBe(firstTexts(before)[0])
    expect(changed).toContain('This replaces what was said of it before.')
    expect(changed).toContain('No longer in force.')
    for (const text of ['Second version.', 'New file.', 'No longer in force.'])
      expect(countCopies(changed, text)).toBe(1)
    world.write('CLAUDE.md', 'First version.')
    const [back = ''] = await world.run('Say: three.')
    expect(countCopies(back, 'First version.')).toBe(2)
    const [idle = ''] = await world.run('Say: four.')
    expect(countCopies(idle, 'First version.')).toBe(2)
    // A summary of a shorter conversation would not be smaller than the conversation.
    await world.run(`Say: ${'something long, '.repeat(300)}`)
    expect(await world.session.compact()).toMatchObject({ ok: true })
    const [after = ''] = await world.run('Say: five.')
    for (const text of ['First version.', 'New file.']) expect(countCopies(after, text)).toBe(1)
    for (const text of ['Second version.', 'Goes.', 'No longer in force.'])
      expect(countCopies(after, text)).toBe(0)
  })

  it('takes at most its budget: long files are cut and say where the rest is, short rules stay whole', async () => {
    const long = 'A long line of instructions, one of very many.\n'.repeat(9_000)
    const world = await openMemoryWorld(
      { 'CLAUDE.md': long, 'AGENTS.md': 'Canary ✓.\r\n' },
      { policy: { memoryFiles: { reminderTokens: 5_000 } } },
    )
    const [body = ''] = await world.run('Say: one.')
    const [reminder = ''] = firstTexts(body)
    expect(reminder).toContain('Canary ✓.\r\n')
    expect(reminder).toMatch(/\[cut: \d+ of 423000 characters are shown; read .*CLAUDE\.md for the rest\]/)
    expect(reminder.length).toBeGreaterThan(10_000)
    expect(world.session.contextRemaining().tokens).toBeLessThan(5_200)
    await world.run('Say: two.')
    expect(countCopies(world.bodies.at(-1) ?? '', 'long line of instructions')).toBe(
      countCopies(body, 'long line of instructions'),
    )
  })

  it('a rule is byte for byte in the first request after each of 10 compactions, in one copy and in front', async () => {
    const canary = 'Canary: "amounts"\tare in cents – always. ✓\r\n'
    const world = await openMemoryWorld({ 'CLAUDE.md': canary, 'src/CLAUDE.md': 'Nested canary.', ...CODE })
    world.write('src/a.ts', 'export const total = (cents: number): number => cents // in cents\n'.repeat(100))
    for (let round = 0; round < 10; round += 1) {
      for (let turn = 0; turn < 3; turn += 1) await world.read('src/a.ts')
      const end = await world.session.compact()
      expect(end.ok).toBe(true)
      const [body = ''] = await world.run('Say: on.')
      expect(countCopies(body, canary)).toBe(1)
      expect(firstTexts(body)[0]).toContain(canary)
      expect(countCopies(body, 'Nested canary.')).toBeLessThanOrEqual(1)
    }
    await world.session.clear()
    const [cleared = ''] = await world.run('Say: on.')
    expect([countCopies(cleared, canary), firstTexts(cleared)[0]?.includes(canary)]).toEqual([1, true])
  })
})

describe('other context', () => {
  it('git status is taken once, and again at a compaction, and never before the project is trusted', async () => {
    const world = await openMemoryWorld({ 'a.txt': 'a'.repeat(3_000), ...CODE })
    const git = (...args: readonly string[]) => execFileSync('git', args, { cwd: world.cwd, stdio: 'ignore' })
    git('init', '--initial-branch=trunk')
    // A program that Git would run for each status, if the repository could decide.
    world.write('.git/monitor.sh', '#!/bin/sh\ntouch "$(dirname "$0")/ran"\n')
    chmodSync(join(world.cwd, '.git/monitor.sh'), 0o755)
    git('config', 'core.fsmonitor', '.git/monitor.sh')
    const [body = ''] = await world.run('Say: on.')
    expect(firstTexts(body)[0]).toContain(
      '# Git status when this context began\n## No commits yet on trunk\n?? a.txt\n',
    )
    world.write('later.txt', '')
    for (let turn = 0; turn < 4; turn += 1) await world.read('a.txt')
    expect(world.bodies.at(-1)).not.toContain('later.txt')
    expect((await world.session.compact()).ok).toBe(true)
    const [after = ''] = await world.run('Say: on.')
    expect(firstTexts(after)[0]).toContain('later.txt')
    expect(countCopies(after, '# Git status')).toBe(1)
    expect(existsSync(join(world.cwd, '.git/ran'))).toBe(false)
    const session = await world.tide.open('b', {
      carriers: memoryFiles({ cwd: world.cwd, isTrusted: false }),
    })
    await session.run('Say: on.').outcome
    expect(world.bodies.at(-1)).not.toContain('Git status')
  })

  it('that changes is appended if it should be, and one that fails takes nothing with it', async () => {
    let selection: string | null = 'line 1'
    const context = [
      { heading: 'Selection', read: () => selection, tellsChanges: true },
      { heading: 'Time', read: () => String(Math.random()) },
      {
        heading: 'Broken',
        read: () => {
          throw new Error('The editor is gone.')
        },
      },
    ]
    const world = await openMemoryWorld({ 'CLAUDE.md': 'Root.' }, { files: { context } })
    const [body = ''] = await world.run('Say: one.')
    expect(firstTexts(body)[0]).toContain('Root.')
    expect(world.unread).toEqual([{ path: 'Broken', why: 'The editor is gone.' }])
    selection = 'line 2'
    const [changed = ''] = await world.run('Say: two.')
    expect(countCopies(changed, '# Selection\nline 2')).toBe(1)
    expect(countCopies(changed, '# Time')).toBe(1)
    selection = null
    const [ended = ''] = await world.run('Say: three.')
    expect(countCopies(ended, '# Selection\nNo longer in force.')).toBe(1)
  })
})

describe('a compaction of a part', () => {
  it.each(['from', 'up_to'] as const)('(%s) leaves one current copy', async (form) => {
    const world = await openMemoryWorld({ 'CLAUDE.md': 'First.', ...CODE })
    world.write('top.ts', 'export const total = (cents: number): number => cents // in cents\n'.repeat(100))
    const before = firstTexts((await world.read('top.ts'))[0])[0]
    for (let turn = 0; turn < 3; turn += 1) await world.read('top.ts')
    world.write('CLAUDE.md', 'Second.')
    const [pivot = ''] = await world.session.append(user('Say: the pivot.'))
    await world.session.run(null).outcome
    await world.read('top.ts')
    const end = await world.session.compact({ form, pivot })
    expect(end.ok).toBe(true)
    const [body = ''] = await world.run('Say: on.')
    expect(countCopies(body, 'Second.')).toBe(1)
    const [front = ''] = firstTexts(body)
    // What is kept in front keeps its bytes, so that it is read from the cache.
    expect(front).toBe(form === 'from' ? before : before?.replace('First.', 'Second.'))
  })
})
