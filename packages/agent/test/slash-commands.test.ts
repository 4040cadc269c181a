/** Slash commands of user and project in `tidemark chat`, and what runs only after trust. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type ChatWorld, createChatWorld, playSteps, type Step } from './chat-world.ts'

/** A chat whose last prompt is kept, as the texts of its blocks. The user's home is the folder around the project. */
async function createWorld(...steps: readonly Step[]) {
  const sent: string[] = []
  const play = playSteps(...(steps.length === 0 ? ['Done.'] : steps))
  const world = await createChatWorld((request, context) => {
    const texts = request.messages.flatMap(({ role, content }) =>
      role !== 'user'
        ? []
        : typeof content === 'string'
          ? [content]
          : content.map((block) => String(block.text ?? '')),
    )
    sent.push(texts.filter((text) => !text.startsWith('<system-reminder>')).join('\n'))
    return play(request, context)
  })
  return { ...world, last: () => sent.at(-1) ?? '' }
}

function writeHome({ env }: ChatWorld, name: string, text: string): void {
  const path = join(env.HOME ?? '', name)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

describe('a slash command', () => {
  it('sends the text of its file with the arguments in place', async () => {
    const world = await createWorld()
    world.write('.claude/commands/fix.md', '---\ndescription: Fixes.\n---\nFix issue $1 ($ARGUMENTS).')
    expect(await world.run('chat', '-p', '/fix 12 "at once"')).toMatchObject({ code: 0, err: '' })
    expect(world.last()).toBe(
      [
        '<command-message>fix</command-message>\n<command-name>/fix</command-name>\n<command-args>12 "at once"</command-args>',
        '<command-contents>\nFix issue 12 (12 "at once").\n</command-contents>',
      ].join('\n'),
    )
  })

  it('is the words of the user in the list of sessions, and not the text of the file', async () => {
    const world = await createWorld()
    world.write('.claude/commands/fix.md', 'Body of the file.')
    await world.run('chat', '-p', '/fix the login page')
    const { out } = await world.run('sessions', '--json')
    expect(out).toContain('/fix the login page')
    expect(out).not.toContain('Body of the file')
  })

  it('can come as a JSON line, alone or with an image beside it', async () => {
    const world = await createWorld()
    world.write('.claude/commands/fix.md', 'Fix $1.')
    const line = (content: unknown): string =>
      `${JSON.stringify({ type: 'user', message: { role: 'user', content } })}\n`
    const blocks = [
      { type: 'text', text: '/fix b' },
      { type: 'text', text: 'More.' },
    ]
    await world.pipe(line('/fix a') + line(blocks), { inputFormat: 'stream-json' })
    expect(world.last()).toContain('\nFix a.\n')
    expect(world.last()).toMatch(/\nFix b\.\n<\/command-contents>\nMore\.$/)
  })

  it('of the user comes before one of the project; one in a folder is found by either name', async () => {
    const world = await createWorld()
    writeHome(world, '.claude/commands/fix.md', 'Mine.')
    world.write('.claude/commands/fix.md', 'Theirs.')
    world.write('.claude/commands/web/test.md', 'Nested.')
    for (const [prompt, text] of [
      ['/fix', 'Mine.'],
      ['/web:test', 'Nested.'],
      ['/test', 'Nested.'],
    ] as const) {
      await world.run('chat', '-p', prompt)
      expect(world.last()).toContain(`<command-contents>\n${text}\n`)
    }
  })

  it('that does not exist is not sent, and near names are told; a path and a text after a space are sent', async () => {
    const world = await createWorld()
    world.write('.claude/commands/review.md', 'Review it.')
    const { code, err } = await world.run('chat', '-p', '/reveiw all')
    expect([code, err]).toEqual([
      1,
      'tidemark: there is no command /reveiw for -p; nothing was sent. Did you mean /review? With a space before it, it is sent as a prompt.\n',
    ])
    for (const prompt of ['/tmp is full', ' /reveiw all']) {
      expect(await world.run('chat', '-p', prompt)).toMatchObject({ code: 0, err: '' })
      expect(world.last()).toBe(prompt)
    }
  })

  it('is not read through a link out of the project', async () => {
    const world = await createWorld()
    writeHome(world, 'secret.md', 'The secret.')
    mkdirSync(world.path('.claude/commands'), { recursive: true })
    symlinkSync(join(world.env.HOME ?? '', 'secret.md'), world.path('.claude/commands/leak.md'))
    const { err } = await world.run('chat', '-p', '/leak')
    expect(err).toContain('leak.md was not read: it is outside what may be read.')
    expect(err).toContain('there is no command /leak for -p; nothing was sent.')
    expect(world.last()).not.toContain('The secret.')
  })
})

describe('a shell command in a slash command', () => {
  const SHELL = 'Branch: !`echo main; touch "$HOME/ran"`.'

  it('of the user runs, and its output stands in its place', async () => {
    const world = await createWorld()
    writeHome(world, '.claude/commands/go.md', 'Out: !`echo one; exit 3` and !`echo two`.')
    await world.run('chat', '-p', '/go')
    expect(world.last()).toContain('\nOut: one\n[exit code 3] and two.\n')
  })

  it('of a project runs only after trust, and again needs trust when it has changed', async () => {
    const world = await createWorld()
    world.write('.claude/commands/go.md', SHELL)
    const { err } = await world.run('chat', '-p', '/go')
    expect(err).toContain('want to set commands, which is not applied')
    expect(err).toContain(
      '/go: a command was not run (echo main; touch "$HOME/ran"): you have not trusted it',
    )
    expect([world.last().includes('Branch: [not run: echo main'), world.read('../ran')]).toEqual([true, null])
    expect((await world.run('trust', world.folder, '--yes')).out).toContain('commands: /go: echo main; touch')
    expect(await world.run('chat', '-p', '/go')).toMatchObject({ err: '' })
    expect([world.last().includes('\nBranch: main.\n'), world.read('../ran')]).toEqual([true, ''])
    world.write('.claude/commands/go.md', 'Branch: !`echo other`.')
    await world.run('chat', '-p', '/go')
    expect(world.last()).toContain('[not run: echo other]')
  })

  it('needs trust again when a script that it runs has changed', async () => {
    const world = await createWorld()
    world.write('tell.sh', 'echo first')
    world.write('.claude/commands/go.md', 'Said: !`sh ./tell.sh`.')
    await world.run('trust', world.folder, '--yes')
    await world.run('chat', '-p', '/go')
    expect(world.last()).toContain('Said: first.')
    world.write('tell.sh', 'echo second')
    expect((await world.run('chat', '-p', '/go')).err).toContain(
      '/go: a command was not run (sh ./tell.sh): it has changed since you trusted it',
    )
    expect(world.last()).toContain('Said: [not run: sh ./tell.sh].')
  })

  it('gets arguments as values that are never run', async () => {
    const world = await createWorld()
    writeHome(world, '.claude/commands/go.md', 'Out: !`echo "$1|$ARGUMENTS"`. In: $1')
    await world.run('chat', '-p', '/go "$(touch ../ran)" !`touch ../ran`')
    expect(world.last()).toContain(
      'Out: $(touch ../ran)|"$(touch ../ran)" !`touch ../ran`. In: $(touch ../ran)',
    )
    expect(world.read('../ran')).toBeNull()
  })

  it('does not run against a deny rule', async () => {
    const world = await createWorld()
    writeHome(world, '.claude/commands/go.md', SHELL)
    writeHome(world, '.config/tidemark/settings.json', '{"permissions":{"deny":["Bash(touch:*)"]}}')
    const { err } = await world.run('chat', '-p', '/go')
    expect(err).toContain('The rule Bash(touch:*) forbids it.')
    expect(world.read('../ran')).toBeNull()
  })
})

describe('tools that a slash command allows', () => {
  const STEPS = [{ Bash: { command: 'echo ran' } }, 'Done.'] as const
  const FILE = '---\nallowed-tools: Bash(echo:*)\n---\nDo it.'

  it('need no permission in its turn if the command is the user’s own', async () => {
    const world = await createWorld(...STEPS)
    writeHome(world, '.claude/commands/go.md', FILE)
    await world.run('chat', '-p', '/go')
    expect(world.lastResults()).toEqual(['ran'])
  })

  it('need no permission after trust if it is the project’s', async () => {
    const world = await createWorld(...STEPS)
    world.write('.claude/commands/go.md', FILE)
    await world.run('chat', '-p', '/go')
    expect(world.lastResults()[0]).toContain('not permitted')
    await world.run('trust', world.folder, '--yes')
    await world.run('chat', '-p', '/go')
    expect(world.lastResults()).toEqual(['ran'])
  })

  it('need it again with the next prompt', async () => {
    const world = await createWorld(
      { Bash: { command: 'echo ran' } },
      'Done.',
      { Bash: { command: 'echo ran' } },
      'Done.',
    )
    writeHome(world, '.claude/commands/go.md', FILE)
    const line = (content: string): string =>
      `${JSON.stringify({ type: 'user', message: { role: 'user', content } })}\n`
    await world.pipe(line('/go') + line('Again.'), { inputFormat: 'stream-json' })
    expect(world.lastResults()).toEqual(['ran', expect.stringContaining('not permitted')])
  })
})
