import { describe, expect, it } from 'vitest'
import { detectLineFormat, detectLogFormat } from './log-format.ts'

describe('the format of a log', () => {
  it.each([
    [
      '{"type":"tidemark","format":"tidemark-session","version":1,"sessionId":"s","timestamp":"t"}',
      'tidemark',
    ],
    [
      '{"seq":4,"type":"user","uuid":"u","parentUuid":null,"message":{"role":"user","content":"x"}}',
      'tidemark',
    ],
    [
      '{"type":"user","uuid":"u","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"x"}}',
      'claude-code',
    ],
    ['\uFEFF {"type":"system","subtype":"x","uuid":"u","sessionId":"s"}', 'claude-code'],
    ['{"type":"summary","summary":"x","leafUuid":"u"}', 'claude-code'],
    ['{"type":"file-history-snapshot","messageId":"m","snapshot":{}}', 'claude-code'],
    ['{"type":"queue-operation","operation":"enqueue","sessionId":"s"}', 'claude-code'],
    ['{"timestamp":"t","type":"session_meta","payload":{"id":"s"}}', 'codex'],
    ['{"timestamp":"t","ordinal":3,"type":"event_msg","payload":{"type":"token_count"}}', 'codex'],
    ['{"id":"s","timestamp":"t","instructions":null}', 'codex'],
    ['{"record_type":"state"}', 'codex'],
    ['{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}', 'codex'],
    ['{"type":"message","role":"user","content":[{"type":"input_image","image_url":"data:"}]}', 'codex'],
    ['{"type":"message","role":"assistant","content":[{"type":"output_text","text":"ok"}]}', 'codex'],
    ['{"type":"message","role":"user","content":[]}', null],
    ['{"type":"message","role":"user","content":"go"}', null],
    ['{"type":"message","role":"user","content":[{"type":"text","text":"go"}]}', null],
    ['{"type":"message","role":"assistant","content":["go"]}', null],
    ['{"type":"function_call","call_id":"c","name":"shell","arguments":"{}"}', 'codex'],
    ['{"type":"message","message":{"role":"user","content":[]}}', null],
    ['{"type":"message","role":"toolResult","content":[]}', null],
    ['{"type":"function_call"}', null],
    ['{"type":"reasoning","text":"x"}', null],
    ['{"id":"x","timestamp":"t","level":"info"}', null],
    ['{"record_type":"purchase"}', null],
    ['{"type":"tidemark","format":"something else"}', null],
    ['{"type":"user","message":{"role":"user","content":"x"},"session_id":"s"}', null],
    ['{"type":"session_meta"}', null],
    ['{"type":"anything","payload":{}}', null],
    ['{"name":"package","version":"1.0.0"}', null],
    ['{"type":"user","uuid":"u","parentUu', null],
    ['[]', null],
    ['7', null],
    ['', null],
  ])('%s: %s', (line, format) => {
    expect(detectLineFormat(line)).toBe(format)
  })

  it('is detected by the first line that only one program writes, after damaged lines as well', () => {
    const lines = [
      '',
      '\0\0',
      '{"type":"user","uu',
      '{"type":"unknown"}',
      '{"type":"compacted","payload":{}}',
      '{"type":"tidemark"}',
    ]
    expect(detectLogFormat(lines)).toEqual({ ok: true, format: 'codex' })
  })

  const expected =
    'expected the JSON lines of a Claude Code session, of a Codex rollout or of a session of Tidemark'
  it.each([
    [[], `has no lines: ${expected}`],
    [['', '  '], `has no lines: ${expected}`],
    [['hello', '{"half'], `has no JSON lines: ${expected}`],
    [
      ['{"type":"session","id":"s","timestamp":"t","cwd":"/shop"}'],
      `is a session of pi, which cannot be read yet: ${expected}`,
    ],
    [
      ['{"half', '{"type":"message","timestamp":"t","message":{"role":"toolResult","content":[]}}'],
      `is a session of pi, which cannot be read yet: ${expected}`,
    ],
    [
      ['{', '  "info": {', '    "id": "ses_1",', '    "slug": "x"', '  }', '}'],
      `is a session of opencode, which cannot be read yet: ${expected}`,
    ],
    [
      ['{"info":{"id":"ses_1"},"messages":[]}'],
      `is a session of opencode, which cannot be read yet: ${expected}`,
    ],
    [['[{"type":"message","role":"user","content":[]}]'], `has no JSON lines: ${expected}`],
    [['day,tokens', '2026-03-09,7'], `has no JSON lines: ${expected}`],
    [
      [
        '{"type":"message","role":"user","content":"go"}',
        '{"type":"message","role":"assistant","content":"ok"}',
      ],
      `has JSON lines, but none of a kind that is known: ${expected}`,
    ],
    [['{"a":1}'], `has JSON lines, but none of a kind that is known: ${expected}`],
  ])('%j is refused', (lines, message) => {
    expect(detectLogFormat(lines)).toEqual({ ok: false, message })
  })
})
