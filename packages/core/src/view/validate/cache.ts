/** Cache markers: each for itself as it is met, and all of them together, in the order of a request, at the end. */
import { type Block, isBlankText, isBlock } from '../../conversation/block.ts'
import { isObject } from '../../conversation/json.ts'
import { List } from '../../conversation/list.ts'
import type { CacheRules } from '../../policy/profile.ts'
import { type Fields, isAbsent, type Report } from './finding.ts'
import { allBlocks, type ReadMessage } from './read.ts'
import { isTurnScoped } from './system.ts'

/** A marker that was met. Its lifetime is null where it asks for one there is not. */
export interface Marker {
  readonly path: string
  readonly ttl: string | null
}

export interface CacheState {
  readonly markers: List<Marker>
  /** The last block that could carry a marker, for the one that a request puts there by itself. */
  readonly target: string | null
}

export const startCache: CacheState = { markers: List.of(), target: null }

export interface MarkerRules {
  readonly cache: CacheRules
  readonly report: Report
}

export function stepCache(state: CacheState, message: ReadMessage, rules: MarkerRules): CacheState {
  const isScoped = isTurnScoped(message.fields)
  let { markers } = state
  for (const { block, path } of allBlocks(message.blocks)) {
    if (isAbsent(block.cache_control)) continue
    if (isScoped) reportScoped(path, rules.report)
    markers = markers.push(readMarker(block, path, rules))
  }
  const target = isScoped ? undefined : message.blocks.findLast(({ block }) => canCarry(block, rules.cache))
  return { markers, target: target?.path ?? state.target }
}

export function reportScoped(path: string, report: Report): void {
  report('turn-scoped-marker', path, 'Expected no cache marker in a system message for one turn.')
}

export function canCarry(block: Block, { unmarkable }: CacheRules): boolean {
  return !unmarkable.includes(block.type) && !isBlankText(block)
}

/** A marker on a block at `path`, with what is wrong about it. */
export function readMarker(block: Block, path: string, rules: MarkerRules): Marker {
  if (!canCarry(block, rules.cache)) {
    rules.report('marker-refused', `${path}.cache_control`, `Expected no cache marker on ${kindOf(block)}.`)
  }
  return { path, ttl: readTtl(block.cache_control, `${path}.cache_control`, rules) }
}

function kindOf(block: Block): string {
  return isBlankText(block) ? 'text that is blank' : `a ${block.type} block`
}

/** The lifetime that a marker asks for. */
export function readTtl(control: unknown, path: string, { cache, report }: MarkerRules): string | null {
  if (!isObject(control) || control.type !== 'ephemeral') {
    report('marker-shape', path, "Expected an object of type 'ephemeral'.")
    return null
  }
  checkExtras(control, path, { cache, report })
  const ttl = isAbsent(control.ttl) ? cache.defaultTtl : control.ttl
  const known = cache.ttls.find(({ name }) => name === ttl)
  const names = cache.ttls.map(({ name }) => `'${name}'`).join(' or ')
  if (known === undefined) report('marker-ttl', `${path}.ttl`, `Expected ${names}.`)
  return known?.name ?? null
}

function checkExtras(control: Fields, path: string, { cache, report }: MarkerRules): void {
  for (const [field, value] of Object.entries(control)) {
    if (field === 'type' || field === 'ttl' || value === undefined) continue
    if (field === 'scope' && cache.scopes.some((scope) => scope === value)) continue
    report(
      'marker-field',
      `${path}.${field}`,
      'Expected no field but type and ttl, and a scope where there is one.',
    )
  }
}

const noReport: Report = () => {}

/** Every marker of a request, in the order in which a provider reads it. What is wrong with each is reported elsewhere. */
function markersBefore(request: Fields, cache: CacheRules): readonly Marker[] {
  const marked = (list: unknown, name: string): readonly Marker[] =>
    Array.isArray(list)
      ? Array.from(list, (item: unknown, index) => [item, `${name}.${index}`] as const)
          .filter(([item]) => isObject(item) && !isAbsent(item.cache_control))
          .map(([item, path]) => ({ path, ttl: ttlOf(item, cache) }))
      : []
  return [...marked(request.tools, 'tools'), ...marked(request.system, 'system')]
}

function ttlOf(item: unknown, cache: CacheRules): string | null {
  return isObject(item) ? readTtl(item.cache_control, '', { cache, report: noReport }) : null
}

/** Markers of the messages in order, and the block that the request's own marker would fall on. */
export interface MessageMarkers {
  readonly markers: readonly Marker[]
  readonly target: string | null
}

export function finishCache(messages: MessageMarkers, request: Fields, rules: MarkerRules): void {
  const { cache, report } = rules
  const markers = [...markersBefore(request, cache), ...messages.markers]
  const shortest = checkOrder(markers, rules)
  const isAutomatic = !isAbsent(request.cache_control)
  const paths = [
    ...markers.map(({ path }) => `${path}.cache_control`),
    ...(isAutomatic ? ['cache_control'] : []),
  ]
  const surplus = paths[cache.maxMarkers]
  if (surplus !== undefined) {
    report('marker-count', surplus, `Expected at most ${cache.maxMarkers} markers, found ${paths.length}.`)
  }
  if (isAutomatic)
    checkAutomatic({ request, shortest, target: targetOf(messages, request, cache), markers }, rules)
}

/** The shortest lifetime met, in seconds: nothing behind it may ask for a longer one. */
function checkOrder(markers: readonly Marker[], { cache, report }: MarkerRules): number {
  let shortest = Number.POSITIVE_INFINITY
  for (const { path, ttl } of markers) {
    if (ttl === null) continue
    const seconds = secondsOf(ttl, cache)
    if (seconds > shortest) reportOrder(`${path}.cache_control.ttl`, report)
    else shortest = Math.min(shortest, seconds)
  }
  return shortest
}

function reportOrder(path: string, report: Report): void {
  const order = 'along tools, system and messages'
  report('marker-order', path, `Expected a lifetime no longer than that of the markers before it, ${order}.`)
}

function secondsOf(ttl: string, cache: CacheRules): number {
  return cache.ttls.find(({ name }) => name === ttl)?.seconds ?? 0
}

function targetOf({ target }: MessageMarkers, request: Fields, cache: CacheRules): string | null {
  if (target !== null) return target
  const blocks: readonly unknown[] = Array.isArray(request.system) ? request.system : []
  const inSystem = blocks.findLastIndex((block) => isBlock(block) && canCarry(block, cache))
  if (inSystem >= 0) return `system.${inSystem}`
  return Array.isArray(request.tools) && request.tools.length > 0 ? `tools.${request.tools.length - 1}` : null
}

interface Automatic {
  readonly request: Fields
  readonly markers: readonly Marker[]
  readonly shortest: number
  readonly target: string | null
}

function checkAutomatic({ request, markers, shortest, target }: Automatic, rules: MarkerRules): void {
  const { cache, report } = rules
  if (!cache.automatic) {
    report('marker-automatic', 'cache_control', 'Expected markers on blocks alone, none on the request.')
    return
  }
  const ttl = readTtl(request.cache_control, 'cache_control', rules)
  if (ttl === null) return
  const own = markers.find(({ path }) => path === target)
  if (own === undefined) {
    if (secondsOf(ttl, cache) > shortest) reportOrder('cache_control.ttl', report)
  } else if (own.ttl !== null && own.ttl !== ttl) {
    report(
      'marker-automatic',
      'cache_control.ttl',
      `Expected '${own.ttl}', as on the last block (${own.path}).`,
    )
  }
}
