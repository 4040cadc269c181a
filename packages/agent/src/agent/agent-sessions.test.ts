import { expect, it } from 'vitest'
import { formatResumeCommand } from './agent-sessions.ts'

it('the command that goes on with a session has its options, quoted for a shell, and no key', () => {
  expect(formatResumeCommand('chat-1', {})).toBe('tidemark chat --resume chat-1')
  const env = { npm_command: 'exec' }
  expect(formatResumeCommand('chat-1', {}, { env })).toBe('npx tidemark chat --resume chat-1')
  expect(
    formatResumeCommand(
      'chat-1',
      {
        model: 'claude-opus-5',
        baseUrl: 'http://me:secret@127.0.0.1:8080/v1?key=secret',
        window: 40_000,
        permissionMode: 'accept-edits',
        allowedTools: ['Edit', 'Bash(npm test:*)'],
        appendSystemPrompt: "Don't guess.",
      },
      { more: '-p ""' },
    ),
  ).toBe(
    `tidemark chat --resume chat-1 -p "" --model claude-opus-5 --base-url http://127.0.0.1:8080/v1 --window 40000 --permission-mode accept-edits --append-system-prompt 'Don'\\''t guess.' --allowed-tools Edit 'Bash(npm test:*)'`,
  )
})
