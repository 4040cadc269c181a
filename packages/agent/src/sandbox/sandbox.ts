/**
 * The sandbox for commands: `bwrap` on Linux, `sandbox-exec` on macOS. When it is opened, a trial command tests whether it really confines;
 * otherwise it is not used.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createDomainProxy, type HostCheck } from './domain-proxy.ts'
import {
  findGuardedFiles,
  type GuardedFiles,
  type GuardRules,
  renameNewGuardedFiles,
} from './guarded-files.ts'
import {
  type ConfinementPlan,
  createBwrapArguments,
  createSandboxEnvironment,
  createSeatbeltProfile,
  type PlaceAccess,
} from './mount-plan.ts'
import { createBridgeCommand, openProxyBridge, openProxyPort, type ProxyEntrance } from './proxy-entrance.ts'
import { createSeccompFilter } from './seccomp-filter.ts'

interface SandboxOptions {
  /** The working directory, with symbolic links resolved. */
  readonly folder: string
  /** A folder of the session that commands cannot access. */
  readonly ownFolder: string
  /** Access to places outside the working directory. The longest path that contains a file decides. */
  readonly places: ReadonlyMap<string, PlaceAccess>
  readonly guards: GuardRules
  readonly hasNetwork: boolean
  /** Hosts that commands reach through a proxy if they have no other network. If omitted, there are none. */
  readonly hosts?: { readonly listed: readonly string[]; readonly check: HostCheck }
  /** Default: the platform of this process. */
  readonly platform?: NodeJS.Platform
  /** Folders that are searched for the confining program. Default: folders of the system. */
  readonly programFolders?: readonly string[]
}

/** A program with its arguments. */
type Call = readonly [program: string, args: readonly string[]]

/** A sandbox that has passed its trial. */
export interface Sandbox {
  /** The folder that commands see as `/tmp`. */
  readonly tempFolder: string
  readonly places: ReadonlyMap<string, PlaceAccess>
  readonly hasNetwork: boolean
  /** Hosts that commands without other network can reach, as listed by the user. */
  readonly listedHosts: readonly string[]
  /** Prepares the sandbox for one command: finds what must be guarded now. Rejects if that fails. */
  enter(): Promise<ConfinedRun>
  /** Renames guarded files that were created by commands nobody waited for, and closes their way to the proxy. */
  close(): Promise<void>
}

/** One command in the sandbox. */
export interface ConfinedRun {
  /** Returns the command line that runs the given command in the sandbox. */
  wrap(program: string, args: readonly string[]): Call
  /** Must be called when the command has ended: renames what it must not have created, and closes its network. */
  leave(): Promise<PreventedActions>
}

/** What the sandbox prevented. */
export interface PreventedActions {
  /** Names of files that only the user may create. They were renamed. */
  readonly moved: readonly string[]
  /** Why hosts were refused. */
  readonly refusals: readonly string[]
}

export type OpenSandboxResult =
  | { readonly ok: true; readonly sandbox: Sandbox }
  /** `why`: a sentence for the user. */
  | { readonly ok: false; readonly why: string }

/** Opens the sandbox and runs its trial command. Not `ok` if no program can confine commands here, or if the trial failed. */
export async function openSandbox(options: SandboxOptions): Promise<OpenSandboxResult> {
  const { folder, ownFolder, guards, hasNetwork, platform = process.platform } = options
  const confiner = findConfiner(platform, options.programFolders ?? SYSTEM_FOLDERS)
  if (typeof confiner === 'string') return { ok: false, why: confiner }
  const tempFolder = join(ownFolder, 'sandbox-tmp')
  await mkdir(tempFolder, { recursive: true, mode: 0o700 })
  const places = new Map<string, PlaceAccess>([
    ...(await resolvePlaces(options.places)),
    [await realpath(ownFolder), 'none'],
    [await realpath(tempFolder), 'write'],
    [folder, 'write'],
  ])
  const filter = join(ownFolder, 'sandbox-filter')
  await writeFile(filter, createSeccompFilter(process.arch) ?? '', { mode: 0o600 })
  const running = new Map<GuardedFiles, RunNetwork | null>()
  const sweep = async (): Promise<void> => {
    for (const before of running.keys()) await renameNewGuardedFiles(folder, before, guards)
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
      // Files that a background command has created meanwhile must not be taken for the user's own.
      await sweep()
      const found = await findGuardedFiles(folder, guards)
      const network = await openNetwork(options, confiner)
      running.set(found, network)
      const targets = await Promise.all(
        [...found.links.keys()].map((link) => realpath(link).catch(() => link)),
      )
      const all = new Map<string, PlaceAccess>([
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
          const moved = await renameNewGuardedFiles(folder, found, guards)
          return { moved, refusals: [...(network?.refusals ?? [])] }
        },
      }
    },
  }
  const why = await tryConfinement(sandbox, ownFolder, confiner)
  return why === null ? { ok: true, sandbox } : { ok: false, why }
}

/** Resolves symbolic links, because mounts need real paths. */
function resolvePlaces(
  places: ReadonlyMap<string, PlaceAccess>,
): Promise<readonly (readonly [string, PlaceAccess])[]> {
  return Promise.all(
    [...places].map(async ([path, access]) => [await realpath(path).catch(() => path), access] as const),
  )
}

/** The connection of one command to its permitted hosts. */
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
  const entrance = needsBridge ? await openProxyBridge(ownFolder, proxy) : await openProxyPort(proxy)
  return { entrance, refusals: proxy.refusals }
}

interface Confiner {
  /** Advice for the user if the trial fails. */
  readonly advice: string
  /** True if commands have their own network and cannot reach ports of this machine. */
  readonly needsBridge: boolean
  wrap(plan: ConfinementPlan, filter: string, call: Call): Call
}

/** Folders of the confining programs. The PATH is not used, because a project can add its own folder to it, as npm does. */
const SYSTEM_FOLDERS = ['/usr/bin', '/bin', '/usr/local/bin', '/run/current-system/sw/bin']
const INSTALL_BWRAP = 'To install it: sudo apt install bubblewrap (or dnf, pacman, zypper)'

/** Returns the program that confines commands on this system; a sentence if there is none. */
function findConfiner(platform: NodeJS.Platform, folders: readonly string[]): Confiner | string {
  if (platform === 'darwin')
    return {
      advice: 'The profile for macOS was never run before; please report this.',
      needsBridge: false,
      wrap(plan, _, [program, args]) {
        const variables = Object.entries(createSandboxEnvironment(plan.tempFolder, plan.entrance))
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
      const call = plan.entrance ? createBridgeCommand(plan.entrance.port, program, args) : [program, ...args]
      // A shell opens the filter as descriptor 3, because not every caller can pass a descriptor.
      return ['/bin/sh', ['-c', 'exec "$@" 3<"$0"', filter, bwrap, ...createBwrapArguments(plan), ...call]]
    },
  }
}

/** The trial command. `$1`: a file outside; `$2`: the temporary folder; `$3`: a hidden file; `$4`: the id of this process. */
const TRIAL = `
echo x >"$1"
echo x >"$2/inside"
cat "$3" >"$2/hidden"
{ cat "/proc/$4/environ" || ps -Eww -p "$4"; } >"$2/environment"
true`

const TRIAL_MS = 10_000

/** Runs a command that tries to leave the sandbox. Returns a sentence about what was wrong; null if the command is confined. */
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
