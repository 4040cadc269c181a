/**
 * Plan mode: the agent only reads until the user has approved a plan. The state is stored beside the log, so that a continued session stays
 * in plan mode. Only an approval or a switch to another mode ends it.
 */
import { readFile } from 'node:fs/promises'
import { type ContextSource, planModeSource } from 'tidemark'
import { writeFileAtomic } from 'tidemark/tools'
import { isObject } from '../json-value.ts'
import type { PermissionMode } from './permissions.ts'

interface PlanModeOptions {
  /** The file with the state of the session. */
  readonly file: string
  /** The mode from the command line. It overrides the session's stored mode. */
  readonly given: PermissionMode | undefined
  /** The mode of the settings. */
  readonly usual: PermissionMode | undefined
  /** True if the user can be asked to approve a plan. */
  readonly canAsk: boolean
  /** True if the user can switch the mode while the session is open. */
  readonly canSwitch: boolean
}

interface PlanMode {
  /**
   * True if the session is or was in plan mode, or can be switched to it. The tool for plans then stays declared, because removing it would
   * break the cache.
   */
  readonly isUsed: boolean
  readonly source: ContextSource
  /** Returns the permission mode as it is now. */
  readMode(): PermissionMode
  /** Ends plan mode. Returns false if it is not on. */
  end(): Promise<boolean>
  /** Switches to another permission mode. */
  switchTo(mode: PermissionMode): Promise<void>
}

/** Opens the plan mode of a session. The command line, the stored state or the settings turn it on. Each change is stored. */
export async function openPlanMode(options: PlanModeOptions): Promise<PlanMode> {
  const { file, given, usual, canAsk, canSwitch } = options
  const stored = await readState(file)
  let isOn = given === undefined ? (stored ?? usual === 'plan') : given === 'plan'
  const isUsed = isOn || stored !== null
  let other = [given, usual].find((mode) => mode !== undefined && mode !== 'plan') ?? 'default'
  // Writes run one after the other, so that the last choice is stored last.
  let written: Promise<unknown> = Promise.resolve()
  const write = async (): Promise<void> => {
    const store = () => writeFileAtomic(file, `${JSON.stringify({ isOn })}\n`)
    written = written.then(store, store)
    await written
  }
  if (isUsed && isOn !== stored) await write()
  return {
    isUsed: isUsed || canSwitch,
    source: planModeSource(() => (isOn ? `${PLAN_TEXT} ${canAsk ? ASK_TEXT : UNATTENDED_TEXT}` : null)),
    readMode: () => (isOn ? 'plan' : other),
    async end() {
      if (!isOn) return false
      isOn = false
      await write()
      return true
    },
    async switchTo(mode) {
      if (mode !== 'plan') other = mode
      if (isOn === (mode === 'plan')) return
      isOn = mode === 'plan'
      await write()
    },
  }
}

const PLAN_TEXT =
  'Only read and plan: files cannot be changed and commands cannot be run until the user has approved a plan. Find out what you need to know, then call ExitPlanMode with the plan.'
const ASK_TEXT = 'The user is then asked to approve it.'
const UNATTENDED_TEXT =
  'Nobody can approve it in this run: give the plan as your answer too, and end your turn. The user approves it by continuing the session in another permission mode.'

/** Returns whether plan mode was on; null if the session has never been in it. A file that cannot be read counts as on. */
async function readState(file: string): Promise<boolean | null> {
  try {
    const value: unknown = JSON.parse(await readFile(file, 'utf8'))
    return !(isObject(value) && value.isOn === false)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? null : true
  }
}
