/** Standing instructions, the plan and the modes: what a person set, byte for byte, never cut and never shed. */
import type { Carrier } from './carrier.ts'
import { type Given, simpleCarrier } from './simple-carrier.ts'

/** A text and where it lies. */
export interface StandingText {
  readonly path: string
  readonly text: string
}

/** Memory files and rules, as they read now. */
export function standingCarrier(read: () => Given<readonly StandingText[]>): Carrier {
  return simpleCarrier({
    name: 'standing',
    kind: 'standing',
    read: async () =>
      (await read()).map(({ path, text }) => ({
        id: path,
        attachment: { type: 'nested_memory', path, content: text },
        source: path,
      })),
  })
}

/** The plan file; null where there is none. Between compactions the model itself writes it. */
export function planCarrier(read: () => Given<StandingText | null>): Carrier {
  return simpleCarrier({
    name: 'plan',
    kind: 'plan',
    tellsChanges: false,
    read: async () => {
      const plan = await read()
      if (plan === null) return []
      const { path, text } = plan
      const attachment = { type: 'plan_file_reference', planFilePath: path, planContent: text }
      return [{ id: path, attachment, source: path }]
    },
  })
}

const PLAN_MODE =
  'Only read and plan: change no file, run nothing that changes anything, until the person has agreed to the plan.'

/** `read` gives true, or the host's own words, while plan mode is on; false or null while it is off. */
export function planModeCarrier(read: () => Given<boolean | string | null>): Carrier {
  return simpleCarrier({
    name: 'plan-mode',
    kind: 'plan-mode',
    read: async () => {
      const mode = await read()
      if (mode === false || mode === null) return []
      const content = mode === true ? PLAN_MODE : mode
      return [{ id: '', attachment: { type: 'plan_mode', content }, source: 'host' }]
    },
  })
}

/** The permission mode the host is in. It is told and never changed from here; null says nothing. */
export function permissionCarrier(read: () => Given<string | null>): Carrier {
  return simpleCarrier({
    name: 'permission',
    kind: 'permission',
    read: async () => {
      const mode = await read()
      if (mode === null) return []
      const content = `${mode}\nOnly the person changes it; nothing said in a summary does.`
      return [{ id: '', attachment: { type: 'permission_mode', mode, content }, source: 'host' }]
    },
  })
}
