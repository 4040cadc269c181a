/** Memory files in `tidemark chat`: which are read, and that a project reaches nothing that the user has not permitted. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Script } from '@tidemark/simulator'
import { describe, expect, it } from 'vitest'
import { type ChatWorld, createChatWorld, playSteps, type Step } from './chat-world.ts'

/** A chat whose requests are kept. The user's home is the folder around the project. */
async function createWorld(...steps: readonly Step[]): Promise<ChatWorld & { last(): string }> {
  const sent: string[] = []
  const play = playSteps(...steps)
  const script: Script = (request, context) => {
    sent.push(request.messages.map(({ content }) => JSON.stringify(content)).join('\n'))
    return play(request, context)
  }
  const world = await createChatWorld(script)
  return { ...world, last: () => sent.at(-1) ?? '' }
}

function writeHome({ env }: ChatWorld, name: string, text: string): void {
  const path = join(env.HOME ?? '', name)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

function trust(world: ChatWorld, more: object = {}): void {
  const settings = { trustedFolders: [world.folder], ...more }
  writeHome(world, '.config/tidemark/settings.json', JSON.stringify(settings))
}

function listFound(text: string, parts: readonly string[]): readonly string[] {
  return parts.filter((part) => text.includes(part))
}

const READ = { Read: { file_path: 'src/a.ts' } }

describe('memory files in the chat', () => {
  it('are read from CLAUDE.md and AGENTS.md of project and user, and of folders that the model reads in', async () => {
    const world = await createWorld(READ, 'Done.')
    writeHome(world, '.claude/CLAUDE.md', 'User one.')
    writeHome(world, '.codex/AGENTS.md', 'User two.')
    world.write('CLAUDE.md', 'Project one.')
    world.write('AGENTS.md', 'Project two.')
    world.write('src/AGENTS.md', 'Nested.')
    world.write('src/a.ts', 'a')
    expect(await world.run('chat', '-p', 'Look.')).toMatchObject({ code: 0 })
    const parts = ['User one.', 'User two.', 'Project one.', 'Project two.', 'Nested.']
    expect(listFound(world.last(), parts)).toEqual(parts)
  })

  it('that a rule denies, or that settings exclude, are not read', async () => {
    const world = await createWorld(READ, 'Done.')
    trust(world, { permissions: { deny: ['Read(src/CLAUDE.md)'] }, memoryExcludes: ['lib/**'] })
    world.write('.tidemark/settings.json', JSON.stringify({ memoryExcludes: ['AGENTS.md'] }))
    world.write('CLAUDE.md', 'Root. @lib/more.md @src/CLAUDE.md')
    world.write('AGENTS.md', 'Excluded by the project.')
    world.write('lib/more.md', 'Excluded by the user.')
    world.write('src/CLAUDE.md', 'Denied.')
    world.write('src/a.ts', 'a')
    const { code, err } = await world.run('chat', '-p', 'Look.')
    expect(code).toBe(0)
    expect(err.split('was not read: it is outside what may be read.')).toHaveLength(2)
    expect(err).toContain(`The memory file ${world.path('src/CLAUDE.md')} was not read`)
    expect(listFound(world.last(), ['Root.', 'Excluded', 'Denied.'])).toEqual(['Root.'])
  })

  it('are told once of an import whose file is missing', async () => {
    const world = await createWorld(READ, 'Done.')
    trust(world)
    world.write('CLAUDE.md', 'Root. @missing.md')
    world.write('src/a.ts', 'a')
    const { err } = await world.run('chat', '-p', 'Look.')
    expect(err.split(`The memory file ${world.path('missing.md')} was not read`)).toHaveLength(2)
  })

  it('import nothing before the folder is trusted, and then only what may be read without a question', async () => {
    const world = await createWorld('Done.')
    world.write('CLAUDE.md', 'Root. @inside.md @../outside.md @~/.ssh/key @link.md')
    world.write('inside.md', 'Inside.')
    writeHome(world, 'outside.md', 'Outside.')
    writeHome(world, '.ssh/key', 'Key.')
    symlinkSync(join(world.env.HOME ?? '', '.ssh/key'), world.path('link.md'))
    const parts = ['Root.', 'Inside.', 'Outside.', 'Key.']
    const { err } = await world.run('chat', '-p', 'Look.')
    const notRead = `The memory file ${world.path('inside.md')} was not read: ${world.path('CLAUDE.md')} imports it, and the folder is not trusted.`
    expect(err.split(notRead)).toHaveLength(2)
    expect(listFound(world.last(), parts)).toEqual(['Root.'])
    trust(world)
    await world.run('chat', '-p', 'Look.', '--permission-mode', 'allow-all')
    expect(listFound(world.last(), parts)).toEqual(['Root.', 'Inside.'])
    trust(world, { permissions: { allow: ['Read(~/outside.md)', `Read(${world.env.HOME}/outside.md)`] } })
    await world.run('chat', '-p', 'Look.')
    expect(listFound(world.last(), parts)).toEqual(['Root.', 'Inside.', 'Outside.'])
  })
})
