/**
 * An MCP server for tests, made with the official SDK, over standard streams. It misbehaves as its arguments say:
 * `hang` (never answers), `gate=FILE` (starts once there is such a file), `shuffle` (another order on each list), `grow` (one more tool on each
 * list), `announce=FILE` (announces a change each time that the file grows; without it `shuffle`, `grow` and `spoil` do after each call),
 * `early` (announces one while it is first asked), `late` (answers the second list after the third), `spoil` (from the second list on, a
 * tool that no provider accepts), `named=A,B` (its tools; `crash` ends the server, `wait` never answers), `marker=FILE` (appends a line at
 * each start and each list).
 */
import { appendFileSync, existsSync, statSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js'

const options = new Map(
  process.argv.slice(2).map((text) => text.split('=', 2) as [string, string | undefined]),
)
const marker = options.get('marker')
if (marker !== undefined) appendFileSync(marker, 'started\n')
if (options.has('hang')) {
  process.stdin.resume()
  await new Promise((resolve) => process.stdin.on('end', resolve))
  process.exit()
}
const announce = options.get('announce')
const gate = options.get('gate')
while (gate !== undefined && !existsSync(gate)) await sleep(20)

const names = (options.get('named') ?? 'alpha,beta,gamma,crash').split(',')
let lists = 0
const server = new Server(
  { name: 'test', version: '1.0.0' },
  { capabilities: { tools: { listChanged: true } }, instructions: `Use ${names[0]} first.` },
)
const third = Promise.withResolvers<void>()
server.setRequestHandler(ListToolsRequestSchema, async () => {
  lists += 1
  const grown = options.has('grow') ? Array.from({ length: lists }, (_, index) => `grown_${index}`) : []
  if (marker !== undefined) appendFileSync(marker, 'listed\n')
  if (options.has('early') && lists === 1) await server.sendToolListChanged()
  if (options.has('late') && lists === 2) await third.promise
  if (lists === 3) setImmediate(third.resolve)
  const all = [...names, ...grown]
  const from = options.has('shuffle') ? (lists + process.pid) % all.length : 0
  const tools = [...all.slice(from), ...all.slice(0, from)].map((name) => {
    const isSpoilt = options.has('spoil') && lists > 1 && name === 'beta'
    const fields = { [isSpoilt ? 'a b' : 'text']: { type: 'string' }, count: { type: 'number' } }
    const entries = Object.entries(fields)
    const properties = Object.fromEntries(
      options.has('shuffle') && lists % 2 === 0 ? entries.reverse() : entries,
    )
    const annotations = { readOnlyHint: name === 'alpha' }
    return {
      name,
      description: `Does ${name}.`,
      inputSchema: { type: 'object' as const, properties },
      annotations,
    }
  })
  return { tools }
})
server.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
  if (params.name === 'crash') process.exit(3)
  if (params.name === 'wait') await new Promise(() => {})
  if (announce === undefined && ['shuffle', 'grow', 'spoil'].some((name) => options.has(name)))
    await server.sendToolListChanged()
  const { text = '', count = 1 } = (params.arguments ?? {}) as { text?: string; count?: number }
  return { content: [{ type: 'text', text: `${params.name} ${process.pid}: ${text.repeat(count)}` }] }
})
await server.connect(new StdioServerTransport())
let announced = 0
const announceGrowth = (): void => {
  const size = announce === undefined ? 0 : (statSync(announce, { throwIfNoEntry: false })?.size ?? 0)
  if (size > announced) void server.sendToolListChanged()
  announced = size
}
if (announce !== undefined) setInterval(announceGrowth, 20).unref()
