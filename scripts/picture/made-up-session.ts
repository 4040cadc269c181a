/** A long session that nobody had: what the picture of `tidemark inspect` is drawn from. The same every time. */

const FILES = [
  'src/login/route.ts',
  'src/login/session-store.ts',
  'src/web/read-form.ts',
  'src/accounts/find-account.ts',
  'test/login.test.ts',
]
const COMMANDS = [
  'npm test -- login',
  'npm test',
  'git diff main -- src/login',
  'npm run build',
  'git log --oneline -20',
]
const PROMPTS = [
  'People with a + in their address cannot log in since Friday. Find out why and fix it.',
  'Good. Now the same for the sign-up form, and a test for each.',
  'Two tests fail on CI, but not here. Please look into it.',
  'Write it up for the changelog and open the pull request.',
]

interface Call {
  readonly tool: string
  readonly input: Readonly<Record<string, string>>
  /** Characters of the answer. */
  readonly size: number
}

/** Numbers that look like chance and are not. */
export function createDice(): (sides: number) => number {
  let state = 7
  return (sides) => {
    state = (state * 48_271) % 2_147_483_647
    return state % sides
  }
}

export function callFor(dice: (sides: number) => number): Call {
  const file = FILES[dice(FILES.length)] ?? ''
  const command = COMMANDS[dice(COMMANDS.length)] ?? ''
  const calls: readonly Call[] = [
    { tool: 'Read', input: { file_path: `/home/user/shop/${file}` }, size: 1_500 + dice(12_000) },
    { tool: 'Bash', input: { command }, size: 300 + dice(7_000) },
    { tool: 'Grep', input: { pattern: 'normali[sz]eEmail', path: 'src' }, size: 400 + dice(2_000) },
    {
      tool: 'Edit',
      input: { file_path: `/home/user/shop/${file}`, new_string: code(200 + dice(1_500)) },
      size: 180,
    },
  ]
  return calls[dice(calls.length)] ?? calls[0] ?? { tool: 'Read', input: {}, size: 0 }
}

export function promptAt(number: number): string {
  return PROMPTS[number % PROMPTS.length] ?? ''
}

export function code(characters: number): string {
  return '  const account = await findAccount(normaliseEmail(form.email))\n'
    .repeat(Math.ceil(characters / 64))
    .slice(0, characters)
}
