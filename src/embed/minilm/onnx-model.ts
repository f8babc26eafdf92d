/** A tensor in a safetensors file. */
interface Tensor {
  dtype: string
  shape: number[]
  bytes: Uint8Array
}

/** The tensors of a safetensors file, by name. Their bytes are views of the file. */
export function readSafetensors(file: Uint8Array): Map<string, Tensor> {
  const headerBytes = Number(new DataView(file.buffer, file.byteOffset).getBigUint64(0, true))
  const start = 8 + headerBytes
  const header = JSON.parse(new TextDecoder().decode(file.subarray(8, start))) as Record<
    string,
    { dtype: string; shape: number[]; data_offsets: [number, number] }
  >
  const tensors = new Map<string, Tensor>()
  for (const [name, { dtype, shape, data_offsets: offsets }] of Object.entries(header)) {
    if (name === '__metadata__') continue
    tensors.set(name, { dtype, shape, bytes: file.subarray(start + offsets[0], start + offsets[1]) })
  }
  return tensors
}

/** The used fields of `config.json`. */
export interface BertConfig {
  hidden_size: number
  num_attention_heads: number
  num_hidden_layers: number
  layer_norm_eps: number
}

/**
 * Builds a BERT model as ONNX from its weights. Inputs: the ids of a text's word pieces as `pieces`, and 0, 1, 2, … as `positions`. Output:
 * the last hidden state of each piece, one after another. It takes one text at a time, so that nothing is padded.
 */
export function bertAsOnnx(weights: ReadonlyMap<string, Tensor>, config: BertConfig): { model: Uint8Array; output: string } {
  const { hidden_size: size, num_attention_heads: heads, num_hidden_layers: layers, layer_norm_eps: epsilon } = config
  const graph = new OnnxGraph()
  const weight = (name: string) => {
    const tensor = weights.get(name)
    if (!tensor) throw new Error(`the weights have no ${name}`)
    return graph.tensor(tensor)
  }
  const add = (a: string, b: string) => graph.add('Add', [a, b])
  const normalize = (x: string, name: string) =>
    graph.add('LayerNormalization', [x, weight(`${name}.weight`), weight(`${name}.bias`)], { axis: -1, epsilon: { float: epsilon } })
  const dense = (x: string, name: string) => graph.add('Gemm', [x, weight(`${name}.weight`), weight(`${name}.bias`)], { transB: 1 })
  const byHead = graph.numbers([0, heads, size / heads])
  const together = graph.numbers([0, size])
  const scale = graph.scalar(1 / Math.sqrt(size / heads))

  const attention = (x: string, layer: string) => {
    const split = (name: string, perm: readonly number[]) =>
      graph.add('Transpose', [graph.add('Reshape', [dense(x, `${layer}.attention.self.${name}`), byHead])], { perm })
    const similarity = graph.add('Mul', [graph.add('MatMul', [split('query', [1, 0, 2]), split('key', [1, 2, 0])]), scale])
    const attended = graph.add('MatMul', [graph.add('Softmax', [similarity], { axis: -1 }), split('value', [1, 0, 2])])
    return dense(
      graph.add('Reshape', [graph.add('Transpose', [attended], { perm: [1, 0, 2] }), together]),
      `${layer}.attention.output.dense`,
    )
  }

  const pieces = graph.add('Gather', [weight('embeddings.word_embeddings.weight'), graph.input('pieces')])
  const positions = graph.add('Gather', [weight('embeddings.position_embeddings.weight'), graph.input('positions')])
  const kind = graph.add('Gather', [weight('embeddings.token_type_embeddings.weight'), graph.numbers([0])])
  let x = normalize(add(add(pieces, kind), positions), 'embeddings.LayerNorm')
  for (let number = 0; number < layers; number += 1) {
    const layer = `encoder.layer.${number}`
    x = normalize(add(attention(x, layer), x), `${layer}.attention.output.LayerNorm`)
    const widened = graph.add('Gelu', [dense(x, `${layer}.intermediate.dense`)])
    x = normalize(add(dense(widened, `${layer}.output.dense`), x), `${layer}.output.LayerNorm`)
  }
  return { model: graph.model(x, size), output: x }
}

/** An encoded field of a protobuf message. */
type Field = Uint8Array

const encoder = new TextEncoder()
/** The numbers of ONNX for the types of safetensors. */
const elementTypes: Readonly<Record<string, number>> = { F32: 1, I64: 7, F16: 10 }

/** Builds a graph of ONNX: each call adds an operation and returns the name of its output. */
class OnnxGraph {
  readonly #nodes: Field[] = []
  readonly #initial: Field[] = []
  readonly #inputs: Field[] = []
  #names = 0

  /** A list of integers that each run passes. */
  input(name: string): string {
    this.#inputs.push(bytesField(11, encodeValueInfo(name, elementTypes.I64 ?? 0, ['length'])))
    return name
  }

  /** A constant. Half-precision numbers are cast to single precision. */
  tensor({ dtype, shape, bytes }: Tensor): string {
    const name = this.#name()
    const type = elementTypes[dtype]
    if (type === undefined) throw new Error(`tensors of the type ${dtype} are not supported`)
    this.#initial.push(
      bytesField(5, concat(...shape.map((size) => intField(1, size)), intField(2, type), bytesField(8, name), bytesField(9, bytes))),
    )
    return dtype === 'F16' ? this.add('Cast', [name], { to: 1 }) : name
  }

  numbers(values: readonly number[], shape: number[] = [values.length]): string {
    return this.tensor({ dtype: 'I64', shape, bytes: new Uint8Array(BigInt64Array.from(values, BigInt).buffer) })
  }

  scalar(single: number): string {
    return this.tensor({ dtype: 'F32', shape: [], bytes: new Uint8Array(Float32Array.of(single).buffer) })
  }

  add(
    operation: string,
    inputs: readonly string[],
    attributes: Readonly<Record<string, number | readonly number[] | { float: number }>> = {},
  ): string {
    const output = this.#name()
    const encoded = Object.entries(attributes).map(([name, given]) => bytesField(5, encodeAttribute(name, given)))
    this.#nodes.push(
      bytesField(1, concat(...inputs.map((input) => bytesField(1, input)), bytesField(2, output), bytesField(4, operation), ...encoded)),
    )
    return output
  }

  /** The encoded model with this output: a list of `size` numbers for each piece. */
  model(output: string, size: number): Uint8Array {
    const graph = concat(
      ...this.#nodes,
      bytesField(2, 'graph'),
      ...this.#initial,
      ...this.#inputs,
      bytesField(12, encodeValueInfo(output, 1, ['length', size])),
    )
    return concat(intField(1, 9), bytesField(8, concat(bytesField(1, ''), intField(2, 20))), bytesField(7, graph))
  }

  #name(): string {
    this.#names += 1
    return `v${this.#names}`
  }
}

function encodeValueInfo(name: string, type: number, shape: ReadonlyArray<number | string>): Uint8Array {
  const sizes = shape.map((size) => bytesField(1, typeof size === 'number' ? intField(1, size) : bytesField(2, size)))
  return concat(bytesField(1, name), bytesField(2, bytesField(1, concat(intField(1, type), bytesField(2, concat(...sizes))))))
}

function encodeAttribute(name: string, given: number | readonly number[] | { float: number }): Uint8Array {
  if (typeof given === 'number') return concat(bytesField(1, name), intField(3, given), intField(20, 2))
  if ('float' in given) return concat(bytesField(1, name), floatField(2, given.float), intField(20, 1))
  return concat(bytesField(1, name), ...given.map((one) => intField(8, one)), intField(20, 7))
}

// Protobuf

function concat(...parts: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}

/** An integer of at least 0, or -1. */
function intField(field: number, value: number): Field {
  return Uint8Array.from([...varint(BigInt(field) << 3n), ...varint(BigInt.asUintN(64, BigInt(value)))])
}

function floatField(field: number, value: number): Field {
  const bytes = new Uint8Array(4)
  new DataView(bytes.buffer).setFloat32(0, value, true)
  return concat(Uint8Array.from(varint((BigInt(field) << 3n) | 5n)), bytes)
}

/** A string, bytes, or an embedded message. */
function bytesField(field: number, value: string | Uint8Array): Field {
  const bytes = typeof value === 'string' ? encoder.encode(value) : value
  return concat(Uint8Array.from([...varint((BigInt(field) << 3n) | 2n), ...varint(BigInt(bytes.length))]), bytes)
}

function varint(value: bigint): number[] {
  const bytes: number[] = []
  for (let rest = value; ; rest >>= 7n) {
    if (rest < 0x80n) return [...bytes, Number(rest)]
    bytes.push(Number(rest & 0x7fn) | 0x80)
  }
}
