import { describe, expect, it } from 'vitest'
import { LogBuilder, MODEL, NOTHING_READ, reportBreaks, startLog } from '../../test/claude-code-log.ts'

interface Case {
  readonly name: string
  readonly log: LogBuilder
  readonly cause: string
  readonly evidence: string
}

const skill = (): LogBuilder => {
  const log = startLog('1h', { thinkingMetadata: { level: 'high' } }).prompt('use it', {
    thinkingMetadata: { level: 'high' },
  })
  const call = log.call('Skill')
  log.answer(51_000, { blocks: [call], lifetime: '1h' }).result(String(call.id))
  return log.line({
    type: 'user',
    isMeta: true,
    sourceToolUseID: call.id,
    message: { role: 'user', content: [{ type: 'text', text: 'the skill' }] },
  })
}

const streamed = (): LogBuilder => {
  const log = startLog()
  for (let turn = 0; turn < 12; turn += 1) log.prompt().answer(log.read)
  return log
}

const CASES: readonly Case[] = [
  {
    name: 'a gap longer than five minutes',
    log: startLog().wait(400).prompt().answer(0, NOTHING_READ),
    cause: 'expired',
    evidence:
      '6 min 42 s since the request before, and what it wrote lives 5m; nothing of 50,000 tokens was read',
  },
  {
    name: 'a gap longer than an hour',
    log: startLog('1h')
      .wait(4_000)
      .prompt()
      .answer(9_000, { ...NOTHING_READ, lifetime: '1h' }),
    cause: 'expired',
    evidence:
      '66 min 42 s since the request before, and what it wrote lives 1h; 9,000 of 50,000 tokens were still read',
  },
  {
    name: 'a gap that an hour outlives',
    log: startLog('1h')
      .wait(400)
      .prompt()
      .answer(0, { ...NOTHING_READ, lifetime: '1h' }),
    cause: 'server-side',
    evidence:
      'nothing in the log changed, 6 min 42 s since the request before, and what was written lives 1h; nothing of 50,000 tokens was read',
  },
  {
    name: 'another model',
    log: startLog()
      .prompt()
      .answer(0, { ...NOTHING_READ, model: 'claude-sonnet-4-5-20250929' }),
    cause: 'model-changed',
    evidence: `${MODEL} → claude-sonnet-4-5-20250929; nothing of 50,000 tokens was read`,
  },
  {
    name: 'another speed',
    log: startLog()
      .prompt()
      .answer(0, { ...NOTHING_READ, usage: { speed: 'fast' } }),
    cause: 'speed-changed',
    evidence: 'standard → fast; nothing of 50,000 tokens was read',
  },
  {
    name: 'no other speed, where one usage names the standard speed and the other names none',
    log: startLog()
      .prompt()
      .answer(16_000, { written: 36_000, usage: { speed: 'standard' } }),
    cause: 'server-side',
    evidence:
      'nothing in the log changed, 2 s since the request before, and what was written lives 5m; 16,000 of 50,000 tokens were still read',
  },
  {
    name: 'another effort in the responses',
    log: new LogBuilder()
      .prompt('begin')
      .answer(0, { written: 50_000, fields: { effort: 'high' } })
      .prompt()
      .answer(0, { ...NOTHING_READ, fields: { effort: 'xhigh' } }),
    cause: 'effort-changed',
    evidence: 'high → xhigh; nothing of 50,000 tokens was read',
  },
  {
    name: 'another effort behind a pause that the cache did not outlive',
    log: new LogBuilder()
      .prompt('begin')
      .answer(0, { written: 50_000, fields: { effort: 'high' } })
      .wait(400)
      .prompt()
      .answer(0, { ...NOTHING_READ, fields: { effort: 'xhigh' } }),
    cause: 'expired',
    evidence:
      '6 min 42 s since the request before, and what it wrote lives 5m; nothing of 50,000 tokens was read',
  },
  {
    name: 'a command for the effort that left it as it was',
    log: new LogBuilder()
      .prompt('begin')
      .answer(0, { written: 50_000, fields: { effort: 'high' } })
      .prompt('<command-name>/effort</command-name>')
      .prompt()
      .answer(0, { ...NOTHING_READ, fields: { effort: 'high' } }),
    cause: 'server-side',
    evidence:
      'nothing in the log changed, 3 s since the request before, and what was written lives 5m; nothing of 50,000 tokens was read',
  },
  {
    name: 'a command for the model that left it as it was',
    log: startLog()
      .prompt('<command-name>/model</command-name>')
      .prompt('<local-command-stdout>Kept model as Opus 4.5</local-command-stdout>')
      .prompt()
      .answer(0, NOTHING_READ),
    cause: 'server-side',
    evidence:
      'nothing in the log changed, 4 s since the request before, and what was written lives 5m; nothing of 50,000 tokens was read',
  },
  {
    name: 'a command that was called off',
    log: startLog()
      .prompt('<command-name>/login</command-name>')
      .prompt('<local-command-stdout>Login interrupted</local-command-stdout>')
      .prompt()
      .answer(0, NOTHING_READ),
    cause: 'server-side',
    evidence:
      'nothing in the log changed, 4 s since the request before, and what was written lives 5m; nothing of 50,000 tokens was read',
  },
  {
    name: 'tools that a search loaded',
    log: (() => {
      const log = startLog().prompt()
      const call = log.call('ToolSearch', { query: 'select:WebFetch' })
      const content = [{ type: 'tool_reference', tool_name: 'WebFetch' }]
      return log
        .answer(50_000, { blocks: [call] })
        .line({
          type: 'user',
          message: { role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content }] },
        })
        .answer(0, NOTHING_READ)
    })(),
    cause: 'tools-changed',
    evidence: 'line 5: loaded WebFetch; nothing of 51,000 tokens was read',
  },
  {
    name: 'a tool that a message added with its definition',
    log: startLog()
      .prompt()
      .line({
        type: 'user',
        message: {
          role: 'system',
          content: [{ type: 'tool_addition', tool: { definition: { name: 'Deploy' } } }],
        },
      })
      .answer(0, NOTHING_READ),
    cause: 'tools-changed',
    evidence: 'line 4: loaded Deploy; nothing of 50,000 tokens was read',
  },
  {
    name: 'a notice of no tools at all',
    log: startLog()
      .line({
        type: 'attachment',
        attachment: { type: 'deferred_tools_delta', addedNames: [], removedNames: [] },
      })
      .prompt()
      .answer(0, NOTHING_READ),
    cause: 'server-side',
    evidence:
      'nothing in the log changed, 3 s since the request before, and what was written lives 5m; nothing of 50,000 tokens was read',
  },
  {
    name: 'another version of the program',
    log: new LogBuilder()
      .prompt('begin', { version: '2.1.0' })
      .answer(0, { written: 50_000, fields: { version: '2.1.0' } })
      .prompt('again', { version: '2.1.1' })
      .answer(0, NOTHING_READ),
    cause: 'restarted',
    evidence: 'line 3: the program was started anew; nothing of 50,000 tokens was read',
  },
  {
    name: 'a skill loaded in the middle of a turn',
    log: skill().answer(16_000, { written: 40_000, lifetime: '1h' }),
    cause: 'skill-loaded',
    evidence:
      'line 3: a prompt with {"level":"high"}, then line 6: a skill, with no settings beside it (inferred: the log does not say what a skill is sent with); 16,000 of 52,000 tokens were still read',
  },
  {
    name: 'a skill where no thinking settings are logged',
    log: startLog()
      .line({ type: 'user', message: { role: 'user', content: '<command-message>review</command-message>' } })
      .line({
        type: 'user',
        isMeta: true,
        message: { role: 'user', content: [{ type: 'text', text: 'review' }] },
      })
      .answer(0, NOTHING_READ),
    cause: 'skill-loaded',
    evidence:
      'line 1: a prompt without thinking settings, then line 4: a skill, with no settings beside it (inferred: the log does not say what a skill is sent with); nothing of 50,000 tokens was read',
  },
  {
    name: 'other thinking settings with a prompt',
    log: startLog('5m', { thinkingMetadata: { level: 'high' } })
      .prompt('again', { thinkingMetadata: { level: 'low' } })
      .answer(0, NOTHING_READ),
    cause: 'thinking-changed',
    evidence:
      'line 1: a prompt with {"level":"high"}, then line 3: a prompt with {"level":"low"}; nothing of 50,000 tokens was read',
  },
  {
    name: 'a response that came whole where the others were streamed',
    log: streamed()
      .prompt()
      .answer(0, {
        written: 65_000,
        blocks: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
      }),
    cause: 'not-streamed',
    evidence:
      'line 28: this response was logged whole, the others block by block: most likely the stream failed and the host asked again without one; nothing of 62,000 tokens was read',
  },
  {
    name: 'a command that changes the tools',
    log: startLog().prompt('<command-name>/mcp</command-name>').prompt().answer(0, NOTHING_READ),
    cause: 'tools-changed',
    evidence: 'line 3: command /mcp; nothing of 50,000 tokens was read',
  },
  {
    name: 'a notice of tools that came',
    log: startLog()
      .line({ type: 'attachment', attachment: { type: 'deferred_tools_delta', addedNames: ['x'] } })
      .prompt()
      .answer(0, NOTHING_READ),
    cause: 'tools-changed',
    evidence: 'line 3: notice deferred_tools_delta; nothing of 50,000 tokens was read',
  },
  {
    name: 'the first image',
    log: startLog()
      .line({
        type: 'user',
        message: {
          role: 'user',
          content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA' } }],
        },
      })
      .answer(0, NOTHING_READ),
    cause: 'image-added',
    evidence: 'message 2 has the first image; nothing of 50,000 tokens was read',
  },
  {
    name: 'a turn wider than the look-back',
    log: startLog()
      .line({
        type: 'user',
        message: { role: 'user', content: Array.from({ length: 25 }, () => ({ type: 'text', text: 'x' })) },
      })
      .answer(0, NOTHING_READ),
    cause: 'look-back-outrun',
    evidence: 'more than 20 positions were added since the request before; nothing of 50,000 tokens was read',
  },
  {
    name: 'a shorter lifetime than before',
    log: startLog('1h').prompt().answer(0, NOTHING_READ),
    cause: 'lifetime-changed',
    evidence: 'what is written lives 5m, before it lived 1h; nothing of 50,000 tokens was read',
  },
  {
    name: 'a memory file written',
    log: (() => {
      const log = startLog().prompt()
      const call = log.call('Write', { file_path: '/home/user/shop/CLAUDE.md' })
      return log
        .answer(50_000, { blocks: [call] })
        .result(String(call.id))
        .answer(0, NOTHING_READ)
    })(),
    cause: 'memory-changed',
    evidence: 'line 4: CLAUDE.md was written; nothing of 51,000 tokens was read',
  },
  {
    name: 'a memory file written by a tool of another program',
    log: (() => {
      const log = startLog().prompt()
      const call = log.call('editor', {
        command: 'create',
        path: '/home/user/shop/AGENTS.md',
        file_text: 'x',
      })
      return log
        .answer(50_000, { blocks: [call] })
        .result(String(call.id))
        .answer(0, NOTHING_READ)
    })(),
    cause: 'memory-changed',
    evidence: 'line 4: AGENTS.md was written; nothing of 51,000 tokens was read',
  },
  {
    name: 'another folder',
    log: startLog('5m', { cwd: '/a' })
      .prompt('there', { cwd: '/a' })
      .prompt('here', { cwd: '/b' })
      .answer(0, NOTHING_READ),
    cause: 'system-changed',
    evidence: 'line 4: the working folder changed; nothing of 50,000 tokens was read',
  },
  {
    name: 'nothing at all',
    log: startLog().prompt().answer(16_000, { written: 36_000 }),
    cause: 'server-side',
    evidence:
      'nothing in the log changed, 2 s since the request before, and what was written lives 5m; 16,000 of 50,000 tokens were still read',
  },
  {
    name: 'nothing at all, in a log that was written in one go',
    log: startLog().wait(-2).prompt().answer(16_000, { written: 36_000 }),
    cause: 'not-known',
    evidence:
      'nothing in the log changed; it tells no time between the requests, and what was written lives 5m; 16,000 of 50,000 tokens were still read',
  },
  {
    name: 'nothing at all, behind a request without a time',
    log: new LogBuilder()
      .prompt('begin', { timestamp: 'some day' })
      .answer(0, { written: 50_000, fields: { timestamp: 'some day' } })
      .prompt()
      .answer(16_000, { written: 36_000 }),
    cause: 'not-known',
    evidence:
      'nothing in the log changed; it tells no time between the requests, and what was written lives 5m; 16,000 of 50,000 tokens were still read',
  },
]

describe('causes', () => {
  it.each(CASES)('$name: $cause', ({ log, cause, evidence }) => {
    const { cacheBreaks } = reportBreaks(log)
    expect(cacheBreaks.map((found) => [found.cause, found.evidence])).toEqual([[cause, evidence]])
  })
})
