/**
 * What a session needs of telemetry, without a dependency on any telemetry package. `tidemark/telemetry` implements it
 * for OpenTelemetry. Whatever an implementation does, an operation of the session runs and ends as without it.
 */
import type { Payload } from '@tidemark/core/context/payload'
import type { TurnEvent } from '@tidemark/core/engine/events'
import type { ToolRunner } from '@tidemark/core/engine/host'
import type { Model } from '@tidemark/core/engine/ports'

/** The option `telemetry` of `createTidemark`, as `openTelemetry` of `tidemark/telemetry` returns it. */
export interface Telemetry {
  observeSession(session: ObservedSession): SessionTelemetry
}

export interface ObservedSession {
  readonly id: string
  /** Label of the caller, such as `sdk` or `agent:review`. */
  readonly source: string
  /** Provider of the model, as the GenAI conventions name it. */
  readonly provider: string
  /** Returns true if the model was offered a tool with this name. A model may call tools that do not exist. */
  readonly hasTool: (name: string) => boolean
}

export interface SessionTelemetry {
  /**
   * Follows an operation by its events and runs each of its steps in the context of its spans. A turn (`run`) gets a
   * span of its own, which starts at once in the caller's context.
   */
  traceOperation<Event extends ObservedEvent, End>(
    operation: string,
    events: AsyncGenerator<Event, End>,
  ): AsyncGenerator<Event, End>
  /** Returns the model with a span for each call. */
  traceModel(model: Model, traits: ModelTraits): Model
  /** Returns the tool runner with each tool run in the context of its span. */
  traceTools(runTool: ToolRunner): ToolRunner
  /** Counts an event of the session. Called once for every event. */
  countEvent(event: ObservedEvent): void
}

/** An event of a session. Telemetry ignores those that do not come from the engine, such as `notice`. */
export type ObservedEvent = TurnEvent | { readonly type: string }

/** What spans of model calls say about the model. */
export interface ModelTraits {
  readonly provider: string
  /** Returns the output limit of a request, which each provider has under another name; null if it has none. */
  readonly readOutputLimit: (payload: Payload) => number | null
}
