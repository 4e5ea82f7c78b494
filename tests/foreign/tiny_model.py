"""Writes a llama of half a megabyte whose weights are random, for a server to serve.

Run by the Python of the environment that has `gguf`: `python tiny_model.py PATH`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

# Neither is in the environment that the tests are checked in.
gguf: Any = import_module("gguf")
numpy: Any = import_module("numpy")

CONTEXT, WIDTH, LAYERS, HEADS, INNER = 16_384, 64, 2, 4, 176
SEED = 4

UNKNOWN, BEGIN, END = "<unk>", "<s>", "</s>"
ROLES = ("<|system|>", "<|user|>", "<|assistant|>", "<|tool|>", "<|tools|>")
WORDS = ("▁", "▁a", "▁is", "▁it", "▁of", "▁on", "▁the", "▁to", "▁we", "an", "er", "in", "on", "re", "th")
LETTERS = tuple(map(chr, range(0x21, 0x7F)))

CHAT_TEMPLATE = """\
{%- if tools %}<|tools|>{{ tools | tojson }}</s>{% endif -%}
{%- for message in messages -%}
<|{{ message['role'] }}|>
{%- if message['content'] is string %}{{ message['content'] }}
{%- else %}{% for part in message['content'] or [] %}{{ part['text'] }}{% endfor %}{% endif -%}
{%- for call in message['tool_calls'] or [] %}{{ call['function'] | tojson }}{% endfor -%}
</s>
{%- endfor -%}
{%- if add_generation_prompt %}<|assistant|>{% endif -%}
"""

COMMON, OFTEN, NEVER = 0.0, 1.5, -60.0
"""What is added to a token's logit: only letters and words are said, and some dozens of them until the end."""


def vocabulary() -> list[tuple[str, Any, float]]:
    """The tokens with their types and weights: special ones, all bytes, then what text is made of."""
    kinds = gguf.TokenType
    return [
        (UNKNOWN, kinds.UNKNOWN, NEVER),
        (BEGIN, kinds.CONTROL, NEVER),
        (END, kinds.CONTROL, OFTEN),
        *((role, kinds.CONTROL, NEVER) for role in ROLES),
        *((f"<0x{byte:02X}>", kinds.BYTE, NEVER) for byte in range(256)),
        # The end of a string comes before long, too.
        *((text, kinds.NORMAL, OFTEN if text == '"' else COMMON) for text in (*WORDS, *LETTERS)),
    ]


def write(path: str) -> None:
    """Write the model to `path`."""
    tokens = vocabulary()
    writer = gguf.GGUFWriter(path, "llama")
    _describe(writer, tokens)
    for name, tensor in _tensors(tokens).items():
        writer.add_tensor(f"{name}.weight", tensor.astype(numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _describe(writer: Any, tokens: list[tuple[str, Any, float]]) -> None:
    names = [name for name, _, _ in tokens]
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(names)
    # Longer tokens are merged first.
    writer.add_token_scores([float(len(name)) for name in names])
    writer.add_token_types([int(kind) for _, kind, _ in tokens])
    writer.add_unk_token_id(names.index(UNKNOWN))
    writer.add_bos_token_id(names.index(BEGIN))
    writer.add_eos_token_id(names.index(END))
    writer.add_chat_template(CHAT_TEMPLATE)


def _tensors(tokens: list[tuple[str, Any, float]]) -> dict[str, Any]:
    """Random weights. The first dimension carries the same number through all layers, and so a token's weight."""
    random = numpy.random.default_rng(SEED)

    def weights(*shape: int, scale: float = 0.03) -> Any:
        return random.normal(0.0, scale, shape)

    embedding, output = weights(len(tokens), WIDTH, scale=0.1), weights(len(tokens), WIDTH, scale=0.1)
    # After normalisation this dimension is about the square root of the width, and the others are small.
    embedding[:, 0] = 3.0
    output[:, 0] = [weight / WIDTH**0.5 for _, _, weight in tokens]
    tensors = {"token_embd": embedding, "output": output, "output_norm": numpy.ones(WIDTH)}
    for layer in range(LAYERS):
        block = {
            "attn_norm": numpy.ones(WIDTH),
            "attn_q": weights(WIDTH, WIDTH),
            "attn_k": weights(WIDTH, WIDTH),
            "attn_v": weights(WIDTH, WIDTH),
            "attn_output": weights(WIDTH, WIDTH),
            "ffn_norm": numpy.ones(WIDTH),
            "ffn_gate": weights(INNER, WIDTH),
            "ffn_up": weights(INNER, WIDTH),
            "ffn_down": weights(WIDTH, INNER),
        }
        block["attn_output"][0] = block["ffn_down"][0] = 0.0
        tensors |= {f"blk.{layer}.{name}": tensor for name, tensor in block.items()}
    return tensors


if __name__ == "__main__":
    write(sys.argv[1])
