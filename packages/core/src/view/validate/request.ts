/** What a request says around its messages. These checks look at nothing in the messages themselves. */
import { isObject } from '../../conversation/json.ts'
import type { Profile } from '../../policy/profile.ts'
import { readMarker, readTtl } from './cache.ts'
import { checkBlock, contentRules } from './content.ts'
import { checkEdits } from './edits.ts'
import { type Fields, fieldAt, isAbsent, type Report } from './finding.ts'
import { readBlocks } from './read.ts'
import { checkThinkingRequest } from './thinking.ts'
import { checkToolChoice, checkTools, isForced } from './tools.ts'

export interface RequestRules {
  readonly profile: Profile
  readonly report: Report
}

export function checkAround(request: Fields, rules: RequestRules): void {
  const { profile, report } = rules
  if (typeof request.model !== 'string' || request.model === '') {
    report('model-missing', 'model', 'Expected the name of a model.')
  }
  checkMaxTokens(request, rules)
  checkBetaList(request.betas, report)
  checkRefused(request, rules)
  checkSystem(request.system, rules)
  checkTools(request, rules)
  checkToolMarkers(request.tools, rules)
  checkToolChoice(request, rules)
  checkThinkingRequest(request, profile, report)
  checkEdits(request, rules)
}

function checkMaxTokens(request: Fields, { profile, report }: RequestRules): void {
  const most = request.max_tokens
  if (isAbsent(most)) {
    if (profile.maxOutputRequired) report('max-tokens', 'max_tokens', 'Expected a limit to the answer.')
    return
  }
  const least = profile.capabilities.prewarm ? 0 : 1
  const limit = profile.maxOutput ?? Number.MAX_SAFE_INTEGER
  if (typeof most !== 'number' || !Number.isInteger(most) || most < least || most > limit) {
    report('max-tokens', 'max_tokens', `Expected a whole number from ${least} to ${limit}.`)
  } else if (most === 0) {
    checkPrewarm(request, report)
  }
}

function checkPrewarm(request: Fields, report: Report): void {
  const thinking = isObject(request.thinking) && request.thinking.type === 'enabled'
  const excluded: readonly (readonly [string, boolean])[] = [
    ['stream', request.stream === true],
    ['thinking.type', thinking],
    ['output_config.format', !isAbsent(fieldAt(request, 'output_config.format'))],
    ['tool_choice', isForced(request)],
  ]
  for (const [path, isPresent] of excluded) {
    if (isPresent) report('prewarm-combination', path, `Expected no such ${path} where max_tokens is 0.`)
  }
}

function checkBetaList(betas: unknown, report: Report): void {
  if (isAbsent(betas)) return
  if (!Array.isArray(betas) || !Array.from(betas).every((beta) => typeof beta === 'string')) {
    report('betas-shape', 'betas', 'Expected a list of strings.')
  }
}

function checkRefused(request: Fields, { profile, report }: RequestRules): void {
  const diagnostics = profile.capabilities.cacheDiagnostics ? [] : ['diagnostics']
  for (const path of new Set([...profile.refusedFields, ...diagnostics])) {
    if (!isAbsent(fieldAt(request, path))) report('field-refused', path, `Expected no ${path}.`)
  }
}

function checkSystem(system: unknown, { profile, report }: RequestRules): void {
  if (isAbsent(system)) return
  if (typeof system !== 'string' && !Array.isArray(system)) {
    report('system-shape', 'system', 'Expected a string or a list of text blocks.')
    return
  }
  for (const item of readBlocks(system, 'system', report)) {
    checkBlock(item, 'prompt', contentRules(profile, report))
    const isMarked = !isAbsent(item.block.cache_control)
    if (isMarked) readMarker(item.block, item.path, { cache: profile.cache, report })
  }
}

function checkToolMarkers(tools: unknown, { profile, report }: RequestRules): void {
  if (!Array.isArray(tools)) return
  for (const [index, tool] of tools.entries()) {
    if (!isObject(tool) || isAbsent(tool.cache_control)) continue
    readTtl(tool.cache_control, `tools.${index}.cache_control`, { cache: profile.cache, report })
  }
}
