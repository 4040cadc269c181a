/** A script called with arguments it cannot take: one line and exit code 2, never a stack. */
export class WrongUse extends Error {
  override readonly name = 'WrongUse'
}

/** Runs a script's `main` to its exit code. */
export async function runScript(name: string, main: () => Promise<number>): Promise<void> {
  try {
    process.exitCode = await main()
  } catch (error) {
    const wrong = isWrongUse(error)
    console.error(wrong && error instanceof Error ? `${name}: ${error.message}` : error)
    process.exitCode = wrong ? 2 : 1
  }
}

/** Ours, or what `parseArgs` of node:util throws. */
function isWrongUse(error: unknown): boolean {
  if (error instanceof WrongUse) return true
  return error instanceof TypeError && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS')
}
