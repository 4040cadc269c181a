/**
 * What a sandboxed command can access: a list of places with their access, and its conversion to arguments of `bwrap` (Linux) and to a
 * profile of `sandbox-exec` (macOS). If two places contain a file, the longer path decides.
 */
import { existsSync, statSync } from 'node:fs'
import { dirname, sep } from 'node:path'
import { BRIDGE_FOLDER, createProxyEnvironment, type ProxyEntrance } from './proxy-entrance.ts'

/** `write`: also reading. `none`: hidden. */
export type PlaceAccess = 'write' | 'read' | 'none'

/** Places by absolute path, without symbolic links. Everything else is readable but not writable. */
type Places = ReadonlyMap<string, PlaceAccess>

/** What one sandboxed command can access. */
export interface ConfinementPlan {
  readonly places: Places
  /** The folder that commands see as `/tmp`. */
  readonly tempFolder: string
  /** True if commands have the same network as this process. False: they only reach what `entrance` leads to. */
  readonly hasNetwork: boolean
  /** The way to the proxy for listed hosts. If omitted, there is no proxy. */
  readonly entrance?: Pick<ProxyEntrance, 'port' | 'folder'>
}

/**
 * Adds the folders between a place that must not change and the writable place around it, each as a place of its own. Otherwise
 * such a folder could be renamed and replaced by another.
 */
export function withPinnedFolders(places: Places): Places {
  const pinned = new Map(places)
  for (const [path, access] of places) {
    if (access === 'write') continue
    const between: string[] = []
    let above = dirname(path)
    while (above !== dirname(above) && !places.has(above)) {
      between.push(above)
      above = dirname(above)
    }
    if (places.get(above) === 'write') for (const folder of between) pinned.set(folder, 'write')
  }
  return pinned
}

/** Parts of the system's runtime folder that programs may need. Its other sockets and secrets are hidden. */
const RUN_PARTS = ['/run/current-system', '/run/opengl-driver', '/run/wrappers']
const RESOLVER_PARTS = ['/run/systemd/resolve', '/run/resolvconf', '/run/NetworkManager/resolv.conf']

/** Returns the arguments of `bwrap` before the command. The filter of system calls is read from descriptor 3. */
export function createBwrapArguments({
  places,
  tempFolder,
  hasNetwork,
  entrance,
}: ConfinementPlan): readonly string[] {
  const run = [...RUN_PARTS, ...(hasNetwork ? RESOLVER_PARTS : [])]
  const mounts = [...withPinnedFolders(places)]
    .filter(([path]) => existsSync(path))
    .sort(([one], [other]) => one.split(sep).length - other.split(sep).length)
  return [
    '--die-with-parent',
    ...['--unshare-user', '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try'],
    ...(hasNetwork ? [] : ['--unshare-net']),
    ...['--cap-drop', 'ALL', '--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc', '--tmpfs', '/run'],
    // With access to this terminal, a program could read what the user types.
    ...['--ro-bind', '/dev/null', '/dev/tty'],
    ...run.flatMap((path) => ['--ro-bind-try', path, path]),
    ...['/tmp', '/var/tmp'].filter(existsSync).flatMap((path) => ['--bind', tempFolder, path]),
    ...mounts.flatMap(([path, access]) => mountPlace(path, access)),
    ...(entrance?.folder ? ['--ro-bind', entrance.folder, BRIDGE_FOLDER] : []),
    // The bridge runs on this Node, which may be installed in a folder that is hidden by the command's `/tmp`.
    ...(entrance?.folder ? ['--ro-bind', process.execPath, process.execPath] : []),
    ...Object.entries(createSandboxEnvironment('/tmp', entrance)).flatMap(([name, value]) => [
      '--setenv',
      name,
      value,
    ]),
    ...['--seccomp', '3', '--'],
  ]
}

/** Returns the environment variables that sandboxed commands get in addition. */
export function createSandboxEnvironment(
  tempFolder: string,
  entrance: ConfinementPlan['entrance'],
): Readonly<Record<string, string>> {
  return { TMPDIR: tempFolder, ...(entrance === undefined ? {} : createProxyEnvironment(entrance.port)) }
}

function mountPlace(path: string, access: PlaceAccess): readonly string[] {
  if (access === 'write') return ['--bind-try', path, path]
  if (access === 'read') return ['--ro-bind-try', path, path]
  return statSync(path).isDirectory() ? ['--tmpfs', path] : ['--ro-bind', '/dev/null', path]
}

/**
 * Returns a profile of `sandbox-exec`. It was written from documentation and was not run on macOS yet: the trial at the start decides
 * whether it works.
 */
export function createSeatbeltProfile({ places, tempFolder, hasNetwork, entrance }: ConfinementPlan): string {
  const rules = [...places].sort(([one], [other]) => one.split(sep).length - other.split(sep).length)
  const quote = (path: string): string => `"${path.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
  return [
    '(version 1)',
    '(allow default)',
    '(deny file-write*)',
    ...['/dev/null', '/dev/zero', '/dev/tty'].map((path) => `(allow file-write* (literal ${quote(path)}))`),
    `(allow file-write* (subpath ${quote(tempFolder)}))`,
    // In a profile, the last matching rule applies.
    ...rules.map(([path, access]) => {
      if (access === 'write') return `(allow file-read* file-write* (subpath ${quote(path)}))`
      if (access === 'read') return `(deny file-write* (subpath ${quote(path)}))`
      return `(deny file-read* file-write* (subpath ${quote(path)}))`
    }),
    // Folders above a guarded file must not be renamed.
    ...[...withPinnedFolders(places)]
      .filter(([path]) => !places.has(path))
      .map(([path]) => `(deny file-write-unlink (literal ${quote(path)}))`),
    ...(hasNetwork ? [] : ['(deny network*)']),
    ...(entrance === undefined ? [] : [`(allow network-outbound (remote ip "localhost:${entrance.port}"))`]),
    // Sockets of services are closed in any case.
    '(deny network-outbound (remote unix-socket))',
    '(deny process-info* (target others))',
    '(deny mach-lookup (global-name "com.apple.SecurityServer") (global-name "com.apple.securityd.xpc"))',
    '(deny appleevent-send)',
  ].join('\n')
}
