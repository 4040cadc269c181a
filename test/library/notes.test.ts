/** Notes of sessions, through the library on the simulator: updated beside the turn, and used by compactions. */
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Script, withSummaries } from '@tidemark/simulator'
import {
  type EventOf,
  type Session,
  type SessionEvent,
  type SessionEventType,
  toolResult,
  user,
} from 'tidemark'
import { deleteSession } from 'tidemark/logs'
import { afterEach, describe, expect, it } from 'vitest'
import { createTestTidemark, type TestTidemark, type TestTidemarkOptions } from '../support/test-tidemark.ts'

const folders: string[] = []
afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true })
})

async function makeHome(): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), 'tidemark-'))
  folders.push(home)
  return home
}

const notesPath = (home: string, id = 'talk'): string =>
  join(home, 'sessions', id, 'session-memory', 'summary.md')

/** Answers of the model to a request for an update of the notes, in order; then it says that it is done. */
type NotesAnswers = readonly ((path: string) => readonly object[])[]

const isNotesRequest = (messages: readonly { readonly content: unknown }[]): boolean =>
  JSON.stringify(messages).includes('bring the notes of this session up to date')

/** A model that reads `rounds` files for each prompt, and updates the notes as `answers` say. */
function createWorker(rounds: number, answers: NotesAnswers = []): Script {
  let [left, update] = [rounds, 0]
  return withSummaries(({ messages }) => {
    const text = JSON.stringify(messages)
    if (isNotesRequest(messages)) {
      const path = /The notes are the file (\S+)\./.exec(text)?.[1] ?? ''
      const blocks = answers[update]?.(path) ?? [{ type: 'text', text: 'Done.' }]
      update += 1
      return { blocks: blocks as never }
    }
    left -= 1
    if (left < 0) {
      left = rounds
      return { blocks: [{ type: 'text', text: 'All files were read.' }] }
    }
    return { blocks: [{ type: 'tool_use', name: 'Read', input: { file_path: `/src/${left}.ts` } }] }
  })
}

const TOOLS = {
  Read: { description: 'Reads.', run: () => 'a line of the file that was read\n'.repeat(450) },
  Edit: {
    description: 'Edits.',
    run: () => {
      throw new Error('The tool of the host must not run for the notes.')
    },
  },
}

interface World extends TestTidemark {
  readonly session: Session
  readonly events: SessionEvent[]
  find<T extends SessionEventType>(type: T): readonly EventOf<T>[]
}

async function open(options: TestTidemarkOptions = {}): Promise<World> {
  const events: SessionEvent[] = []
  const made = createTestTidemark({
    modelId: 'claude-sonnet-4-5',
    system: 'You are a careful engineer. '.repeat(200),
    env: { DISABLE_MICROCOMPACT: '1' },
    window: 64_000,
    maxOutput: 8_000,
    onEvent: (event) => void events.push(event),
    ...options,
  })
  const find = <T extends SessionEventType>(type: T): readonly EventOf<T>[] =>
    events.filter((event): event is EventOf<T> => event.type === type)
  return { ...made, session: await made.tide.open('talk'), events, find }
}

const edit = (path: string): object => ({
  type: 'tool_use',
  name: 'Edit',
  input: {
    file_path: path,
    old_string: '# Current state\n',
    new_string: '# Current state\n',
  },
})

const editState = (path: string): object => ({
  type: 'tool_use',
  name: 'Edit',
  input: {
    file_path: path,
    old_string: '_What is being worked on now, what is still open, what comes next._',
    new_string:
      '_What is being worked on now, what is still open, what comes next._\n\nReading all files of /src.',
  },
})

describe('notes that are kept from the log, as by default', () => {
  it('are on disk, private and readable, cost nothing, and go with their session', async () => {
    const home = await makeHome()
    const { session, find, tide, bodies } = await open({ home, script: createWorker(6) })
    await session.run('Read all files of the project.', { tools: TOOLS }).outcome
    await session.close()
    const notes = await readFile(notesPath(home), 'utf8')
    expect(notes).toContain('# Current state')
    expect(notes).toContain('Read all files of the project.')
    expect((await stat(notesPath(home))).mode & 0o777).toBe(0o600)
    expect((await stat(join(notesPath(home), '..'))).mode & 0o777).toBe(0o700)
    expect(find('notes-updated').at(-1)).toMatchObject({ by: 'local', cost: { dollars: 0 } })
    expect(bodies.some((body) => body.includes('bring the notes'))).toBe(false)
    await tide.close()
    expect(await deleteSession(home, 'talk')).toMatchObject({ ok: true })
    expect(existsSync(notesPath(home))).toBe(false)
  })

  it('still have after five compactions what was decided before the first', async () => {
    // In a language that the notes know no word of, and with more text than they have room for.
    const decide = (place: number): string =>
      `第${place}步的决定：缓存不用外部服务。${'其余细节见下。'.repeat(60)}理由：部署环境没有网络。`
    let step = -1
    const script = withSummaries(() => {
      step += 1
      const input = { file_path: `/src/${step}.ts` }
      if (step % 8 === 7) return { blocks: [{ type: 'text', text: `Step ${step} is done.` }] }
      if (step % 2 === 0) return { blocks: [{ type: 'tool_use', name: 'Read', input }] }
      return {
        blocks: [
          { type: 'text', text: decide(step) },
          { type: 'tool_use', name: 'Edit', input: { ...input, old_string: 'a', new_string: 'b' } },
        ],
      }
    })
    const { session, find, bodies } = await open({ script })
    const tools = { ...TOOLS, Edit: { description: 'Edits.', run: () => 'The file was updated.' } }
    for (let turn = 0; turn < 80 && find('sm-compact').length < 6; turn += 1)
      await session.run(`Go on with part ${turn}.`, { tools }).outcome
    expect(find('sm-compact')).toHaveLength(6)
    const decided = [...(bodies.at(-1) ?? '').matchAll(/第(\d+)步的决定/g)].map(([, place]) => Number(place))
    const before = bodies.findIndex((body) => body.includes('Decisions and findings'))
    expect(Math.min(...decided)).toBeLessThan(before)
  })

  it('are the summary of an automatic compaction: no call is made, and the work goes on', async () => {
    const { session, find, simulator } = await open({ script: createWorker(30) })
    const outcome = await session.run('Read all files of the project.', { tools: TOOLS }).outcome
    expect(outcome).toMatchObject({ ok: true, text: 'All files were read.' })
    const compactions = find('compact').map(({ compaction }) => compaction)
    expect(compactions.length).toBeGreaterThan(0)
    expect(compactions.map(({ summarizer }) => summarizer)).toEqual(compactions.map(() => 'notes'))
    expect(find('sm-compact').map(({ id }) => id)).toEqual(compactions.map(({ id }) => id))
    expect(find('summary-preparing')).toEqual([])
    expect(simulator.requests.every(({ status }) => status === 200)).toBe(true)
    expect(JSON.stringify(session.messages())).toContain('Read all files of the project.')
    for (let left = compactions.length; left > 0; left -= 1)
      expect(await session.undo(undefined, { force: true })).toMatchObject({ ok: true })
  })

  it('are up to date in their file after each turn, and after the session was closed in the middle of one', async () => {
    const home = await makeHome()
    const { session } = await open({ home, script: createWorker(6) })
    await session.run('Read all files of the project.', { tools: TOOLS }).outcome
    await expect.poll(() => readFile(notesPath(home), 'utf8')).toContain('The model has answered it')
    await session.run('Now say what you think.', { tools: TOOLS }).outcome
    await expect.poll(() => readFile(notesPath(home), 'utf8')).toContain('Now say what you think.')
    await session.append(user('And one more thing: keep the names.'))
    await session.close()
    expect(await readFile(notesPath(home), 'utf8')).toContain('And one more thing: keep the names.')
  })

  it('are off with notes.enabled: a summary is written as before', async () => {
    const home = await makeHome()
    const { session, find } = await open({
      home,
      script: createWorker(30),
      policy: { notes: { enabled: false }, compact: { background: false } },
    })
    await session.run('Read all files of the project.', { tools: TOOLS }).outcome
    await session.close()
    expect(find('compact')[0]?.compaction.summarizer).toBe('model')
    expect(find('notes-updated')).toEqual([])
    expect(existsSync(notesPath(home))).toBe(false)
  })

  it('are not used where the user asks for a summary', async () => {
    const { session } = await open({ script: createWorker(6) })
    await session.run('Read.', { tools: TOOLS }).outcome
    expect(await session.compact()).toMatchObject({ ok: true, compaction: { summarizer: 'model' } })
  })

  it('are copied with a fork, and made from the user’s template', async () => {
    const home = await makeHome()
    const folder = join(home, 'session-memory', 'config')
    await mkdir(folder, { recursive: true })
    await writeFile(
      join(folder, 'template.md'),
      '# Current state\n_Now._\n\n# Task specification\n_Asked._\n',
    )
    const { session, tide } = await open({ home, script: createWorker(6) })
    await session.run('Read all.', { tools: TOOLS }).outcome
    const fork = await session.fork('other')
    await tide.close()
    const notes = await readFile(notesPath(home), 'utf8')
    expect(notes.match(/^# .*\n_.*_$/gm)?.slice(0, 2)).toEqual([
      '# Current state\n_Now._',
      '# Task specification\n_Asked._',
    ])
    expect(await readFile(notesPath(home, fork.id), 'utf8')).toContain('# Current state\n_Now._')
  })
})

const NO_USAGE = { input: 0, cacheRead: 0, write5m: 0, write1h: 0, output: 0 }

describe('notes that the model updates', () => {
  const byModel = { notes: { model: true } } as const

  it('read at least 99 % of the prefix from the cache, write nothing to it, and touch their file only', async () => {
    const home = await makeHome()
    const { session, find, simulator, bodies } = await open({
      home,
      ...byModel,
      script: createWorker(6, [
        (path) => [
          { type: 'tool_use', name: 'Read', input: { file_path: '/etc/passwd' } },
          edit('/src/login.ts'),
          editState(path),
        ],
      ]),
    })
    await session.run('Read all files of the project.', { tools: TOOLS }).outcome
    await expect.poll(() => find('notes-updated').length).toBeGreaterThan(0)
    await session.close()
    expect(await readFile(notesPath(home), 'utf8')).toContain('Reading all files of /src.')
    expect(find('notes-tool-refused').map(({ call }) => call.name)).toEqual(['Read', 'Edit'])
    const forks = find('fork').map(({ fork }) => fork)
    expect(forks.length).toBeGreaterThan(1)
    expect(new Set(forks.map(({ source }) => source))).toEqual(new Set(['session_memory']))
    const byNumber = simulator.requests.toSorted((one, other) => one.number - other.number)
    // The conversation and its notes send at the same time: the order of the bodies need not be that of the answers.
    const calls = byNumber.map(({ usage, bodyBytes }) => {
      const body = bodies.find((each) => Buffer.byteLength(each) === bodyBytes) ?? ''
      const { messages } = JSON.parse(body) as { messages: { content: unknown }[] }
      const own = messages.findIndex((message) => isNotesRequest([message]))
      return { usage: usage ?? NO_USAGE, messages: messages.length, own }
    })
    // Closing the session may stop one more update, which then is no fork that ended.
    const updates = calls.filter(({ own }) => own >= 0).slice(0, forks.length)
    expect(updates.map(({ usage }) => usage.cacheRead)).toEqual(forks.map(({ read }) => read))
    for (const { usage, own } of updates) {
      // The conversation's own request that the update continues: the provider has cached all of it.
      const parent = calls.findLast((call) => call.own < 0 && call.messages <= own)?.usage ?? NO_USAGE
      const cached = parent.cacheRead + parent.write5m + parent.write1h
      expect(cached).toBeGreaterThan(5_000)
      expect(usage.cacheRead).toBeGreaterThanOrEqual(0.99 * cached)
      expect(usage.write5m + usage.write1h).toBe(0)
    }
    const [updated] = find('notes-updated')
    expect(updated).toMatchObject({ by: 'model', cost: { usage: { cacheWritten: 0 } } })
    expect(updated?.cost.dollars).toBeGreaterThan(0)
    expect(session.money().spent.total).toBeGreaterThan(updated?.cost.dollars ?? Number.POSITIVE_INFINITY)
    expect(find('cache-break')).toEqual([])
  })

  it('never change what the conversation sends', async () => {
    const answers = [(path: string) => [editState(path)]]
    const [withNotes, without] = [
      await open({ ...byModel, script: createWorker(6, answers) }),
      await open({
        script: createWorker(6),
        policy: { notes: { enabled: false }, compact: { background: false } },
      }),
    ]
    const sent = async ({ session, bodies }: World): Promise<readonly string[]> => {
      for (const prompt of ['Read.', 'Again.']) await session.run(prompt, { tools: TOOLS }).outcome
      await session.close()
      return bodies
        .filter((body) => !body.includes('bring the notes'))
        .map((body) => body.replaceAll(/(?:toolu|msg)_\w+/g, ''))
    }
    expect(await sent(withNotes)).toEqual(await sent(without))
  })

  it('are the summary of a compaction, and all that they do not cover is kept', async () => {
    const { session, find } = await open({
      ...byModel,
      script: createWorker(
        30,
        Array.from({ length: 9 }, () => (path: string) => [editState(path)]),
      ),
    })
    const outcome = await session.run('Read all files of the project.', { tools: TOOLS }).outcome
    expect(outcome).toMatchObject({ ok: true })
    expect(find('sm-compact')[0]).toMatchObject({ by: 'model' })
    expect(find('compact')[0]?.compaction.usage.calls).toBe(0)
  })

  it('are stopped when the session is closed, and the old notes stay', async () => {
    const home = await makeHome()
    const worker = createWorker(6, [(path) => [editState(path)]])
    const closed = Promise.withResolvers<void>()
    const slow: Script = async (request, context) => {
      if (isNotesRequest(request.messages)) await closed.promise
      return worker(request, context)
    }
    const { session, find, events } = await open({ home, ...byModel, script: slow })
    await session.run('Read.', { tools: TOOLS }).outcome
    await session.close()
    const seen = events.length
    closed.resolve()
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(events.slice(seen).map(({ type }) => type)).toEqual([])
    expect(find('notes-updated')).toEqual([])
    expect(find('notes-failed').length).toBeGreaterThan(0)
    expect(existsSync(notesPath(home))).toBe(false)
    expect(existsSync(join(notesPath(home), '..', 'claim.json'))).toBe(false)
  })

  it('that fail are not asked for again at every response', async () => {
    const { session, find } = await open({ ...byModel, script: createWorker(12) })
    const tools = { ...TOOLS, Read: { description: 'Reads.', run: () => 'short' } }
    await session.run('word '.repeat(12_000), { tools }).outcome
    await session.close()
    expect(find('notes-failed').map(({ reason }) => reason)).toEqual(['no-change'])
  })

  it('that fail three times in a row are asked for again only after a compaction, which uses notes from the log', async () => {
    const { session, find, bodies } = await open({ ...byModel, script: createWorker(60) })
    await session.run('Read all files of the project.', { tools: TOOLS }).outcome
    await session.close()
    expect(find('compact').length).toBeGreaterThan(0)
    expect(find('compact').map(({ compaction }) => compaction.summarizer)).toEqual(
      find('compact').map(() => 'notes'),
    )
    expect(find('sm-compact')[0]).toMatchObject({ by: 'local', fallbackReason: 'no-notes' })
    expect(find('sm-compact-refused')).toEqual([])
    const failed = find('notes-failed').filter(({ reason }) => reason !== 'aborted')
    expect(failed.slice(0, 4).map(({ isPaused }) => isPaused ?? false)).toEqual([false, false, true, false])
    expect(failed.length).toBeLessThanOrEqual(3 * (find('compact').length + 1))
    // An update that the end of the session aborts was asked for too.
    const asked = bodies.filter((body) => body.includes('bring the notes')).length
    expect([0, 1]).toContain(asked - failed.length)
  })

  it('are updated in an own loop too, after the response was appended', async () => {
    const home = await makeHome()
    const { session, find, simulator } = await open({
      home,
      ...byModel,
      script: createWorker(6, [(path) => [editState(path)]]),
    })
    const tools = Object.entries(TOOLS).map(([name, { description }]) => ({
      name,
      description,
      input_schema: { type: 'object' },
    }))
    await session.append(user('Read all files.'))
    for (let call = 0; call < 7; call += 1) {
      const request = await session.next({ tools })
      if (!request.ok) throw new Error(request.message)
      const response = await simulator.fetch('http://x/v1/messages', {
        method: 'POST',
        headers: { 'x-api-key': 'any', 'anthropic-version': '2023-06-01', ...request.headers },
        body: request.text,
      })
      const message = (await response.json()) as {
        role: 'assistant'
        content: { type: string; id: string }[]
      }
      await session.append(message)
      for (const { type, id } of message.content)
        if (type === 'tool_use') await session.append(toolResult(id, TOOLS.Read.run()))
    }
    await expect.poll(() => find('notes-updated').length).toBeGreaterThan(0)
    await session.close()
    expect(await readFile(notesPath(home), 'utf8')).toContain('Reading all files of /src.')
  })
})

describe('models that bind thinking to what came before', () => {
  it('update the notes in several rounds: their thinking goes back as it came', async () => {
    const think = { type: 'thinking', thinking: 'What belongs into the notes?' }
    const { session, find, simulator } = await open({
      modelId: 'claude-opus-5-5',
      notes: { model: true },
      script: createWorker(6, [
        () => [think, { type: 'tool_use', name: 'Read', input: { file_path: '/src/1.ts' } }],
        (path) => [think, editState(path)],
      ]),
    })
    await session.run('Read all files of the project.', { tools: TOOLS }).outcome
    await expect.poll(() => find('notes-updated').length).toBeGreaterThan(0)
    await session.close()
    expect(find('notes-updated')[0]?.cost.usage).toMatchObject({ calls: 3, cacheWritten: 0 })
    expect(simulator.requests.map(({ status }) => status).filter((status) => status !== 200)).toEqual([])
    expect(simulator.requests.flatMap(({ transformations }) => transformations)).toEqual([])
  })

  it('accept every request after a compaction with notes', async () => {
    const { session, find, simulator } = await open({
      modelId: 'claude-opus-5-5',
      window: 64_000,
      turns: 40,
      resultTokens: 3_000,
      thinkingTokens: 300,
    })
    const { coder } = createTestTidemark({ turns: 40, resultTokens: 3_000 })
    await session.run('Fix the tests.', {
      tools: coder.tools,
      runTool: (call) => ({ content: String(coder.toolResult(call).content) }),
    }).outcome
    expect(find('sm-compact').length).toBeGreaterThan(0)
    expect(simulator.requests.map(({ status }) => status).filter((status) => status !== 200)).toEqual([])
  })
})
