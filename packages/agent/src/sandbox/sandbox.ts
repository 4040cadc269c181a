/**
 * The sandbox for commands: `bwrap` on Linux, `sandbox-exec` on macOS. Whether it confines is tried with a real command
 * when it is opened; a sandbox that does not confine is not used.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type CheckHost, createDomainProxy } from './domain-proxy.ts'
import { findGuardedFiles, type GuardedFiles, type GuardRules, putNewFilesAside } from './guarded-files.ts'
import {
  type Access,
  type ConfinementPlan,
  createBwrapArguments,
  createSeatbeltProfile,
  listVariables,
} from './mount-plan.ts'
import { createBridgeCall, openBridge, openPort, type ProxyEntrance } from './proxy-entrance.ts'
import { createSeccompFilter } from './seccomp-filter.ts'

interface SandboxOptions {
  /** The working directory, with symbolic links resolved. */
  readonly folder: string
  /** A folder of the session that commands cannot reach. */
  readonly ownFolder: string
  /** Access to places other than the working directory: the longest path that holds a file decides. */
  readonly places: ReadonlyMap<string, Access>
  readonly guards: GuardRules
  readonly hasNetwork: boolean
  /** Hosts that commands reach through a proxy, where there is no other network. If omitted, there are none. */
  readonly hosts?: { readonly listed: readonly string[]; readonly check: CheckHost }
  /** Default: that of this process. */
  readonly platform?: NodeJS.Platform
  /** Where the program that confines is looked for. Default: folders of the system. */
  readonly programFolders?: readonly string[]
}

/** A program with its arguments. */
type Call = readonly [program: string, args: readonly string[]]

export interface Sandbox {
  /** The folder that commands have as `/tmp`. */
  readonly tempFolder: string
  readonly places: ReadonlyMap<string, Access>
  readonly hasNetwork: boolean
  /** Hosts that commands reach where there is no other network, as the user has listed them. */
  readonly listedHosts: readonly string[]
  /** Looks for what must be guarded now, for one command. Rejects if that cannot be done. */
  enter(): Promise<ConfinedRun>
  /** Puts aside what commands have created that were not waited for. Called at the end of the session. */
  close(): Promise<void>
}

export interface ConfinedRun {
  /** Returns the call that runs another one in the sandbox. */
  wrap(program: string, args: readonly string[]): Call
  /** Called when the command has ended. */
  leave(): Promise<RunReport>
}

/** What the sandbox kept a command from. */
export interface RunReport {
  /** The names of files that only the user may create. They were renamed. */
  readonly moved: readonly string[]
  /** Why hosts were refused. */
  readonly refusals: readonly string[]
}

export type OpenedSandbox =
  | { readonly ok: true; readonly sandbox: Sandbox }
  /** `why`: a sentence for the user. */
  | { readonly ok: false; readonly why: string }

export async function openSandbox(options: SandboxOptions): Promise<OpenedSandbox> {
  const { folder, ownFolder, guards, hasNetwork, platform = process.platform } = options
  const confiner = findConfiner(platform, options.programFolders ?? SYSTEM_FOLDERS)
  if (typeof confiner === 'string') return { ok: false, why: confiner }
  const tempFolder = join(ownFolder, 'sandbox-tmp')
  await mkdir(tempFolder, { recursive: true, mode: 0o700 })
  const places = new Map<string, Access>([
    ...(await resolvePlaces(options.places)),
    [await realpath(ownFolder), 'none'],
    [await realpath(tempFolder), 'write'],
    [folder, 'write'],
  ])
  const filter = join(ownFolder, 'sandbox-filter')
  await writeFile(filter, createSeccompFilter(process.arch) ?? '', { mode: 0o600 })
  const running = new Map<GuardedFiles, RunNetwork | null>()
  const sweep = async (): Promise<void> => {
    for (const before of running.keys()) await putNewFilesAside(folder, before, guards)
  }
  const sandbox: Sandbox = {
    tempFolder,
    places,
    hasNetwork,
    listedHosts: options.hosts?.listed ?? [],
    async close() {
      await sweep()
      for (const network of running.values()) await network?.entrance.close()
    },
    async enter() {
      // What a command in the background has created meanwhile must not pass for the user's own.
      await sweep()
      const found = await findGuardedFiles(folder, guards)
      const network = await openNetwork(options, confiner)
      running.set(found, network)
      const targets = await Promise.all(
        [...found.links.keys()].map((link) => realpath(link).catch(() => link)),
      )
      const all = new Map<string, Access>([
        ...places,
        ...[...found.readOnly, ...targets].map((path) => [path, 'read'] as const),
        ...found.hidden.map((path) => [path, 'none'] as const),
      ])
      const way = network === null ? {} : { entrance: network.entrance }
      const plan: ConfinementPlan = { places: all, tempFolder, hasNetwork, ...way }
      return {
        wrap: (program, args) => confiner.wrap(plan, filter, [program, args]),
        async leave() {
          running.delete(found)
          await network?.entrance.close()
          const moved = await putNewFilesAside(folder, found, guards)
          return { moved, refusals: [...(network?.refusals ?? [])] }
        },
      }
    },
  }
  const why = await tryConfinement(sandbox, ownFolder, confiner)
  return why === null ? { ok: true, sandbox } : { ok: false, why }
}

/** Resolves symbolic links, because a place is mounted where it is. */
function resolvePlaces(places: ReadonlyMap<string, Access>): Promise<readonly (readonly [string, Access])[]> {
  return Promise.all(
    [...places].map(async ([path, access]) => [await realpath(path).catch(() => path), access] as const),
  )
}

/** The way of one command to the hosts that it may reach. */
interface RunNetwork {
  readonly entrance: ProxyEntrance
  readonly refusals: ReadonlySet<string>
}

async function openNetwork(
  { hasNetwork, hosts, ownFolder }: SandboxOptions,
  { needsBridge }: Confiner,
): Promise<RunNetwork | null> {
  if (hasNetwork || hosts === undefined) return null
  const proxy = createDomainProxy(hosts.check)
  const entrance = needsBridge ? await openBridge(ownFolder, proxy) : await openPort(proxy)
  return { entrance, refusals: proxy.refusals }
}

interface Confiner {
  /** What to do if the trial fails. */
  readonly advice: string
  /** True if commands have a network of their own, and reach no port of this machine. */
  readonly needsBridge: boolean
  wrap(plan: ConfinementPlan, filter: string, call: Call): Call
}

/**
 * Where the programs are that confine. The search path is not used: a project can put a folder of its own there, as npm
 * does with that of its programs.
 */
const SYSTEM_FOLDERS = ['/usr/bin', '/bin', '/usr/local/bin', '/run/current-system/sw/bin']
const INSTALL_BWRAP = 'To install it: sudo apt install bubblewrap (or dnf, pacman, zypper)'

/** Returns what confines commands on this system; a sentence if nothing does. */
function findConfiner(platform: NodeJS.Platform, folders: readonly string[]): Confiner | string {
  if (platform === 'darwin')
    return {
      advice: 'The profile for macOS was never run before; please report this.',
      needsBridge: false,
      wrap(plan, _, [program, args]) {
        const variables = Object.entries(listVariables(plan.tempFolder, plan.entrance))
        const assignments = variables.map(([name, value]) => `${name}=${value}`)
        const confined = ['-p', createSeatbeltProfile(plan), '/usr/bin/env', ...assignments, program, ...args]
        return ['/usr/bin/sandbox-exec', confined]
      },
    }
  if (platform !== 'linux') return 'there is none for this system'
  if (createSeccompFilter(process.arch) === null) return `there is none for this processor (${process.arch})`
  const bwrap = folders.map((folder) => join(folder, 'bwrap')).find(existsSync)
  if (bwrap === undefined) return `bwrap is not installed. ${INSTALL_BWRAP}`
  return {
    advice: 'bwrap needs user namespaces, which this system or container forbids; see docs/security.md',
    needsBridge: true,
    wrap(plan, filter, [program, args]) {
      const call = plan.entrance ? createBridgeCall(plan.entrance.port, program, args) : [program, ...args]
      // The shell opens the filter as descriptor 3, which not every caller can do.
      return ['/bin/sh', ['-c', 'exec "$@" 3<"$0"', filter, bwrap, ...createBwrapArguments(plan), ...call]]
    },
  }
}

/** `$1`: a file outside; `$2`: the temporary folder; `$3`: a hidden file; `$4`: the id of this process. */
const TRIAL = `
echo x >"$1"
echo x >"$2/inside"
cat "$3" >"$2/hidden"
{ cat "/proc/$4/environ" || ps -Eww -p "$4"; } >"$2/environment"
true`

const TRIAL_MS = 10_000

/** Runs a command that tries to get out. Returns a sentence about what it could or could not do; null if it is confined. */
async function tryConfinement(
  { enter, tempFolder }: Sandbox,
  ownFolder: string,
  { advice }: Confiner,
): Promise<string | null> {
  const [outside, hidden] = [join(ownFolder, 'sandbox-trial'), join(ownFolder, 'sandbox-secret')]
  await rm(outside, { force: true })
  await writeFile(hidden, 'secret')
  const read = (name: string): Promise<string> => readFile(join(tempFolder, name), 'latin1').catch(() => '')
  try {
    const run = await enter()
    const [program, args] = run.wrap('/bin/sh', [
      '-c',
      TRIAL,
      'sh',
      outside,
      tempFolder,
      hidden,
      `${process.pid}`,
    ])
    await promisify(execFile)(program, [...args], { timeout: TRIAL_MS })
    await run.leave()
    if (existsSync(outside)) return 'a command could write outside of it'
    if ((await read('inside')) === '') return `a command could not write its temporary folder. ${advice}`
    if ((await read('hidden')) !== '') return 'a command could read a hidden file'
    const environment = await readFile('/proc/self/environ', 'latin1').catch(() => '')
    const shown = await read('environment')
    const isSeen = environment !== '' ? shown === environment : shown.includes(process.env.PATH ?? '\0')
    return isSeen ? 'a command could read the environment of this process' : null
  } catch (error) {
    const text = (error as { stderr?: string }).stderr?.trim().split('\n')[0] || (error as Error).message
    return `${text}. ${advice}`
  } finally {
    for (const path of [outside, hidden]) await rm(path, { force: true })
    for (const name of ['inside', 'hidden', 'environment']) await rm(join(tempFolder, name), { force: true })
  }
}
