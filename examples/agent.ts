/**
 * A coding agent in one file: tools, permissions, a meter, compaction and undo, on public names only. Without a key it
 * runs against the simulator, on a small project with a fault: `npm run example examples/agent.ts`. With
 * `ANTHROPIC_API_KEY` it asks a real model; name the folder to work in: `npm run example examples/agent.ts FOLDER`.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { createSimulator, type Script, withSummaries } from '@tidemark/simulator'
import { anthropic, createTidemark, type Session, tool } from 'tidemark'
import { stopGroup, waitForExit, writeFileAtomic } from 'tidemark/tools'

const isReal = process.env.ANTHROPIC_API_KEY !== undefined
const folder = process.argv[2] ?? createProject()
const keyboard = process.stdin.isTTY ? createInterface(process.stdin, process.stdout) : null
// What is typed where there is no terminal. The second permission is refused, with a reason.
const typed = ['The total of an order is wrong. Fix it.', '/compact', '/undo', '/exit']
const answers = ['y', 'n, keep the build', 'y']

async function ask(question: string, prepared: string[]): Promise<string> {
  if (keyboard !== null) return (await keyboard.question(question)).trim()
  const answer = prepared.shift() ?? '/exit'
  console.log(`${question}${answer}`)
  return answer
}

// Tools. What they throw is a result with an error, which the model reads.

function findFile(path: string): string {
  const file = resolve(folder, path)
  if (relative(folder, file).startsWith('..')) throw new Error(`${path} is outside of the folder.`)
  return file
}

const TEXT = { type: 'string' } as const

const tools = {
  Read: tool({
    description: 'Reads a text file.',
    input: { type: 'object', properties: { path: TEXT }, required: ['path'] },
    parallel: true,
    run: ({ path }) => readFileSync(findFile(path), 'utf8'),
  }),
  Edit: tool({
    description: 'Replaces a text that is in the file exactly once.',
    input: {
      type: 'object',
      properties: { path: TEXT, from: TEXT, to: TEXT },
      required: ['path', 'from', 'to'],
    },
    async run({ path, from, to }) {
      const parts = readFileSync(findFile(path), 'utf8').split(from)
      if (parts.length !== 2) throw new Error(`The text is in the file ${parts.length - 1} times.`)
      await writeFileAtomic(findFile(path), parts.join(to))
      return `Edited ${path}.`
    },
  }),
  Bash: tool({
    description: 'Runs a shell command in the folder.',
    input: { type: 'object', properties: { command: TEXT }, required: ['command'] },
    async run({ command }, { signal }) {
      // A group of its own, so that what the command starts ends with it.
      const line = `exec </dev/null 2>&1; ${command}`
      const child = spawn('sh', ['-c', line], { cwd: folder, detached: true })
      signal.addEventListener('abort', () => void stopGroup(child.pid ?? 0), { once: true })
      const output: string[] = []
      child.stdout.on('data', (data) => output.push(String(data)))
      const { code } = await waitForExit(child, [child.stdout])
      return { content: `${output.join('')}\nExit code: ${code}`, isError: code !== 0 }
    },
  }),
}

// The model, the permissions, and the session.

const simulated = { apiKey: 'any', fetch: createSimulator({ script: withSummaries(playModel()) }).fetch }
const tide = createTidemark({
  model: anthropic('claude-sonnet-5-5', isReal ? {} : simulated),
  system: `You are a coder. You work in ${folder}.`,
  memory: true, // leave it out to keep sessions on disk: `open` with the same id then resumes one
  canUseTool: ({ name }) => ({ decision: name === 'Read' ? 'allow' : 'ask', reason: name }),
  hooks: { permissionRequest: [{ name: 'user', run: ({ call }) => askUser(call.name, call.input) }] },
})

/** What the user types when refusing is recorded as the user's own words. */
async function askUser(name: string, input: unknown) {
  const answer = await ask(`  May it run ${name} ${JSON.stringify(input)}? (y/n) `, answers)
  if (/^y/i.test(answer)) return { decision: 'allow' } as const
  const userReason = answer.replace(/^n\w*[, ]*/i, '')
  return { decision: 'deny', userReason, reason: `The user does not want this. ${userReason}` } as const
}

const session = await tide.open('agent', { tools })
session.on('tool-started', ({ call }) => console.log(`● ${call.name} ${JSON.stringify(call.input)}`))
session.on('retrying', ({ attempt }) => console.log(`  trying again (${attempt}) …`))
for (let line = ''; line !== '/exit'; line = await ask('> ', typed)) {
  if (line === '') continue
  console.log(await runLine(session, line))
  showMeter(session)
}
keyboard?.close()
await tide.close()
if (process.argv[2] === undefined) rmSync(folder, { recursive: true })

async function runLine(chat: Session, line: string): Promise<string> {
  if (line === '/undo') {
    const point = chat.undoPoints().undo
    if (point === null) return 'There is nothing to undo.'
    const end = await chat.undo(point.id)
    return end.ok ? `Undone: ${end.kind}, ${point.leaving} messages have left` : end.message
  }
  if (line === '/compact') {
    const end = await chat.compact()
    return end.ok ? `Compacted to ${end.compaction.tokensAfter} tokens` : end.message
  }
  const outcome = await chat.run(line).outcome
  return outcome.ok ? outcome.text : outcome.message
}

function showMeter(chat: Session): void {
  const { tokens, percentLeft } = chat.contextRemaining()
  const { spent, savedByCache } = chat.money()
  const money = `$${spent.priced.toFixed(2)} spent, the cache saved $${savedByCache.known.toFixed(2)}`
  console.log(`[${tokens} tokens, ${percentLeft}% left · ${money}]`)
}

// The project with a fault, and the script that plays a model which repairs it.

function createProject(): string {
  const project = mkdtempSync(join(tmpdir(), 'example-agent-'))
  writeFileSync(join(project, 'total.js'), 'console.log(Math.floor(0.1 + 0.2 + 19.6))\n')
  writeFileSync(join(project, 'orders.log'), 'order 17: expected a total of 20, found 19\n'.repeat(400))
  return project
}

function playModel(): Script {
  const calls = [
    { name: 'Read', input: { path: 'orders.log' } },
    { name: 'Edit', input: { path: 'total.js', from: 'Math.floor(', to: 'Math.round(' } },
    { name: 'Bash', input: { command: 'rm -rf build' } },
    { name: 'Bash', input: { command: 'node total.js' } },
  ]
  const end = { blocks: [{ type: 'text', text: 'The total is rounded now.' }] }
  return (_, { turn }) => {
    const call = calls[turn]
    return call === undefined ? end : { blocks: [{ type: 'tool_use', ...call }] }
  }
}
