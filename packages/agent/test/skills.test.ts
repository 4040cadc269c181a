/** Skills in `tidemark chat`: listed once, loaded by the model or the user, and still in use after compactions. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { withSummaries } from '@tidemark/simulator'
import { anthropic } from 'tidemark'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openAgent } from '../src/agent/agent.ts'
import { readSettings } from '../src/agent/settings.ts'
import { type ChatWorld, createChatWorld, playSteps, type Step } from './chat-world.ts'

interface SkillWorld extends ChatWorld {
  /** The messages of the last request, as JSON. */
  last(): string
  /** The definition of the tool Skill in the last request. */
  tool(): string
}

/** The user's home is the folder around the project. */
async function createWorld(...steps: readonly Step[]): Promise<SkillWorld> {
  let [last, tool] = ['', '']
  const play = withSummaries(playSteps(...steps))
  const world = await createChatWorld((request, context) => {
    last = JSON.stringify(request.messages)
    tool = JSON.stringify(request.tools?.find(({ name }) => name === 'Skill') ?? null)
    return play(request, context)
  })
  return { ...world, last: () => last, tool: () => tool }
}

function writeHome({ env }: ChatWorld, name: string, text: string): void {
  const path = join(env.HOME ?? '', name)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

const skill = (description: string, body: string, more = ''): string =>
  `---\ndescription: ${description}\n${more}---\n${body}\n`

async function openSkilledAgent(world: ChatWorld, sessionId = 'skilled') {
  const agent = await openAgent({
    folder: world.folder,
    home: world.home,
    sessionId,
    model: anthropic('claude-sonnet-5-5', { apiKey: 'any', baseUrl: world.server.url }),
    settings: await readSettings(world.folder, world.env),
    env: world.env,
  })
  onTestFinished(() => agent.close())
  const run = async (prompt: string): Promise<void> => {
    const expanded = await agent.expandPrompt(prompt)
    expect(await agent.run(expanded.prompt).outcome).toMatchObject({ ok: true })
  }
  return { agent, run }
}

const count = (text: string, part: string): number => text.split(part).length - 1

describe('skills', () => {
  it('of user and project are listed with their descriptions, and the tool names them', async () => {
    const world = await createWorld('Done.')
    writeHome(world, '.claude/skills/deploy/SKILL.md', skill('Deploys mine.', 'Text.'))
    world.write('.claude/skills/deploy/SKILL.md', skill('Deploys theirs.', 'Text.'))
    world.write('.claude/skills/review/SKILL.md', skill('Reviews.', 'Text.'))
    world.write(
      '.claude/skills/hidden/SKILL.md',
      skill('Hidden.', 'Text.', 'disable-model-invocation: true\n'),
    )
    expect(await world.run('chat', '-p', 'Hello.')).toMatchObject({ code: 0, err: '' })
    expect(world.last()).toContain('Skills that can be used.\\ndeploy: Deploys mine.\\nreview: Reviews.')
    expect(world.tool()).toContain('The skills: deploy, review.')
    expect(world.last() + world.tool()).not.toMatch(/theirs|[Hh]idden/)
  })

  it('without any, neither tool nor listing is there', async () => {
    const world = await createWorld('Done.')
    await world.run('chat', '-p', 'Hello.')
    expect([world.tool(), world.last().includes('Skills')]).toEqual(['null', false])
  })

  it('are loaded with their arguments; an unknown name is answered with those there are', async () => {
    const steps = [
      { Skill: { skill: 'review', args: 'src/a.ts' } },
      { Skill: { skill: 'plain', args: 'x y' } },
      { Skill: { skill: 'nothing' } },
      { Skill: {} },
      'Done.',
    ]
    const world = await createWorld(...steps)
    world.write('.claude/skills/review/SKILL.md', skill('Reviews.', 'Review $1.'))
    world.write('.claude/skills/plain/SKILL.md', skill('Plain.', 'Do it.'))
    await world.run('chat', '-p', 'Hello.')
    expect(world.lastResults()).toEqual([
      `The files of this skill are in ${world.path('.claude/skills/review')}.\n\nReview src/a.ts.`,
      expect.stringMatching(/Do it\.\n\nARGUMENTS: x y$/),
      'There is no skill nothing. The skills: plain, review.',
      'plain: Plain.\nreview: Reviews.',
    ])
  })

  it('of the user may have files that the model reads without a question', async () => {
    const input = { file_path: '' }
    const world = await createWorld({ Read: input }, 'Done.')
    input.file_path = join(world.env.HOME ?? '', '.claude/skills/review/more.md')
    writeHome(world, '.claude/skills/review/SKILL.md', skill('Reviews.', 'See more.md.'))
    writeHome(world, '.claude/skills/review/more.md', 'More text.')
    await world.run('chat', '-p', 'Read.')
    expect(world.lastResults()[0]).toContain('More text.')
  })

  it('run shell commands of a project only after trust, and not against a deny rule', async () => {
    const world = await createWorld({ Skill: { skill: 'go', args: '$(touch ran)' } }, 'Done.')
    world.write('.claude/skills/go/SKILL.md', skill('Goes.', 'Out: !`echo "<$1>"`'))
    await world.run('chat', '-p', 'Hello.')
    expect(world.lastResults()[0]).toContain('Out: [not run: echo "<$1>"]')
    await world.run('trust', world.folder, '--yes')
    await world.run('chat', '-p', 'Hello.')
    expect([world.lastResults()[0], world.read('ran')]).toEqual([
      expect.stringMatching(/Out: <\$\(touch>$/),
      null,
    ])
    writeHome(world, '.config/tidemark/settings.json', '{"permissions":{"deny":["Bash(echo:*)"]}}')
    await world.run('chat', '-p', 'Hello.')
    expect(world.lastResults()[0]).toContain('Out: [not run: ')
  })

  it('can be denied by name', async () => {
    const world = await createWorld({ Skill: { skill: 'go' } }, 'Done.')
    world.write('.claude/skills/go/SKILL.md', skill('Goes.', 'Text.'))
    writeHome(world, '.config/tidemark/settings.json', '{"permissions":{"deny":["Skill(go)"]}}')
    await world.run('chat', '-p', 'Hello.')
    expect(world.lastResults()[0]).toContain('The rule Skill(go) forbids it.')
  })

  it('outside the project are not read through a link', async () => {
    const world = await createWorld('Done.')
    writeHome(world, 'elsewhere/SKILL.md', skill('Secret.', 'Text.'))
    mkdirSync(world.path('.claude/skills'), { recursive: true })
    symlinkSync(join(world.env.HOME ?? '', 'elsewhere'), world.path('.claude/skills/leak'))
    const { err } = await world.run('chat', '-p', 'Hello.')
    expect(err).toContain('was not read: it is outside what may be read.')
    expect(world.last() + world.tool()).not.toContain('Secret')
  })

  it('are not changed by the model without a question, even if edits are allowed', async () => {
    const input = { file_path: '.claude/skills/go/SKILL.md', content: 'Text: !`touch ran`' }
    const world = await createWorld({ Write: input }, 'Done.')
    await world.run('chat', '-p', 'Hello.', '--permission-mode', 'accept-edits')
    expect(world.lastResults()[0]).toContain('decides what runs on this machine')
  })
})

describe('over three compactions', () => {
  it('the listing is sent once in the session, and skills in use stay in the context, one copy each', async () => {
    // The steps are counted by the conversation, which a compaction shortens, so that the model would load it again.
    const first: Record<string, object> = { Skill: { skill: 'one' } }
    const long = 'A long answer. '.repeat(3_000)
    const world = await createWorld(first, long)
    world.write('.claude/skills/one/SKILL.md', skill('Description of one.', 'Body of one.'))
    world.write('.claude/skills/two/SKILL.md', skill('Description of two.', 'Body of two: $1.'))
    world.write('.claude/commands/once.md', 'Body of a command.')
    const { agent, run } = await openSkilledAgent(world)
    await run('Begin.')
    delete first.Skill
    first.TodoWrite = { todos: [{ content: 'Work', status: 'pending' }] }
    await run('/two here')
    await run('/once')
    expect(count(world.last(), 'Description of one.')).toBe(1)
    for (let round = 0; round < 3; round += 1) {
      expect(await agent.session.compact()).toMatchObject({ ok: true })
      await run('Go on.')
      expect(count(world.last(), 'Description of one.')).toBe(0)
      expect(['Body of one.', 'Body of two: here.'].map((text) => count(world.last(), text))).toEqual([1, 1])
      expect(world.last()).toContain('The skill \\"one\\" is in use in this session.')
      expect(world.tool()).toContain('The skills: one, two.')
    }
    await agent.close()
    const again = await openSkilledAgent(world)
    await again.run('Go on in another process.')
    expect([count(world.last(), 'Description of'), count(world.last(), 'Body of one.')]).toEqual([0, 1])
  })

  it('idle turns add nothing, and a new skill is listed alone', async () => {
    const world = await createWorld('Done.')
    world.write('.claude/skills/one/SKILL.md', skill('Description of one.', 'Body.'))
    const { run } = await openSkilledAgent(world)
    for (let turn = 0; turn < 20; turn += 1) await run(`Turn ${turn}.`)
    expect(count(world.last(), '<system-reminder>')).toBe(1)
    world.write('.claude/skills/new/SKILL.md', skill('Description of new.', 'Body.'))
    await run('Next.')
    expect([count(world.last(), 'Description of one.'), count(world.last(), 'Description of new.')]).toEqual([
      1, 1,
    ])
  })
})
