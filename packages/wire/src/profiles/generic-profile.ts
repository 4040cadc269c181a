/**
 * Profiles of providers that are reached through a codec of their own. The codec sees to their shape; what is
 * said here is what the engine must know before it hands a request over.
 */
import type { ProfileOverrides } from '@tidemark/core'
import type { ModelEntry } from '../catalogue/model-entry.ts'
import { cacheOf, sizesOf, thinkingOf, windowOf } from './shared-rules.ts'

/** Reasoning comes back as opaque items that only their model can use, without a signature of the kind we know. */
function opaqueThinking(model: ModelEntry): NonNullable<ProfileOverrides['thinking']> {
  const binding = model.thinking.binding ?? 'model'
  return {
    ...thinkingOf(model),
    binding,
    signed: false,
    closing: 'allowed',
    firstInModes: [],
    unforcedInModes: [],
  }
}

function common(model: ModelEntry): ProfileOverrides {
  return {
    name: `${model.id} (${model.vendor})`,
    ...windowOf(model),
    maxOutputRequired: false,
    tools: {
      declaredWhenUsed: false,
      forcedChoice: model.capabilities.forcedToolChoice === true ? 'allowed' : 'refused',
    },
    thinking: opaqueThinking(model),
    cache: { ...cacheOf(model), automatic: true },
    sizes: sizesOf(model),
  }
}

/** The codec writes an entry of its own for every result and text, so neither order nor turns are checked. */
export function openaiProfile(model: ModelEntry): ProfileOverrides {
  const system = model.capabilities.systemMessages === true ? 'placed' : 'refused'
  return { ...common(model), roles: { first: 'any', consecutive: 'merged', system } }
}

export function geminiProfile(model: ModelEntry): ProfileOverrides {
  return { ...common(model), roles: { consecutive: 'merged' } }
}

/** A model of a provider nobody has described: its own figures, and the strict rules. */
export function strangerProfile(model: ModelEntry): ProfileOverrides {
  return {
    name: `${model.id} (${model.vendor})`,
    ...windowOf(model),
    roles: { prefill: model.capabilities.prefill === true ? 'allowed' : 'refused' },
    tools: { forcedChoice: model.capabilities.forcedToolChoice === true ? 'allowed' : 'refused' },
    thinking: thinkingOf(model),
    cache: cacheOf(model),
    sizes: sizesOf(model),
  }
}
