// SPDX-License-Identifier: Apache-2.0
//
// Launchers' environments, table by table: what is read, which launcher wins, and which variables an error names.
#include "bootstrap/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch_variables.h"
#include "tests/harness/results.h"

namespace ccom {
namespace {

using namespace ccom::testing;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

struct LaunchCase {
  Variables variables;
  Launch expected;
};

TEST(Launch, ReadsEveryLauncher) {
  const LaunchCase cases[] = {
      {{{"CCOM_RANK", "3"}, {"CCOM_NRANKS", "8"}}, {3, 8, -1, -1, "ccom"}},
      {{{"RANK", "5"}, {"WORLD_SIZE", "16"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"}},
       {5, 16, 1, 4, "torchrun"}},
      {{{"RANK", "0"}, {"WORLD_SIZE", "1"}}, {0, 1, -1, -1, "torchrun"}},
      {{{"OMPI_COMM_WORLD_RANK", "2"},
        {"OMPI_COMM_WORLD_SIZE", "4"},
        {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
        {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
        {"PMIX_RANK", "2"}},
       {2, 4, 0, 2, "Open MPI"}},
      {{{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}}, {1, 2, 1, 2, "PMI"}},
      {{{"SLURM_PROCID", "7"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_ID", "0"}, {"SLURM_LOCALID", "3"}},
       {7, 8, 3, -1, "Slurm"}},
      // What the allocation requested does not count.
      {{{"SLURM_PROCID", "3"},
        {"SLURM_NTASKS", "4"},
        {"SLURM_STEP_ID", "1"},
        {"SLURM_LOCALID", "0"},
        {"SLURM_NODEID", "1"},
        {"SLURM_STEP_TASKS_PER_NODE", "3,1"},
        {"SLURM_NTASKS_PER_NODE", "4"}},
       {3, 4, 0, 1, "Slurm"}},
      {{{"CCOM_RANK", "3"}, {"CCOM_NRANKS", "8"}, {"CCOM_LOCAL_RANK", "1"}, {"CCOM_LOCAL_NRANKS", "2"}},
       {3, 8, 1, 2, "ccom"}},
      // PMIx tells a rank only, Slurm beside it the rest.
      {{{"PMIX_RANK", "1"}, {"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"SLURM_STEP_ID", "0"}},
       {1, 2, -1, -1, "Slurm"}},
      {{{"NEURON_PJRT_PROCESS_INDEX", "2"},
        {"NEURON_PJRT_WORLD_SIZE", "4"},
        {"PJRT_LOCAL_PROCESS_RANK", "0"},
        {"PJRT_LOCAL_PROCESS_COUNT", "2"}},
       {2, 4, 0, 2, "Neuron"}},
      {{{"NEURON_PJRT_PROCESS_INDEX", "2"}, {"NEURON_PJRT_PROCESSES_NUM_DEVICES", "64,64,64"}},
       {2, 3, -1, -1, "Neuron"}},
      // An empty value counts as unset.
      {{{"RANK", ""}, {"WORLD_SIZE", ""}, {"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}, {0, 1, -1, -1, "PMI"}},
  };
  for (const LaunchCase& one : cases) {
    const auto launch = read_launch(lookup(one.variables));
    ASSERT_TRUE(launch) << one.expected.launcher << ": " << launch.error().message();
    EXPECT_EQ(launch->launcher, one.expected.launcher);
    EXPECT_EQ(launch->rank, one.expected.rank) << one.expected.launcher;
    EXPECT_EQ(launch->nranks, one.expected.nranks) << one.expected.launcher;
    EXPECT_EQ(launch->local_rank, one.expected.local_rank) << one.expected.launcher;
    EXPECT_EQ(launch->local_nranks, one.expected.local_nranks) << one.expected.launcher;
  }
}

TEST(Launch, PrefersOwnVariablesThenTorchrunThenMpiThenSlurmThenHosts) {
  Variables variables{{"PMIX_RANK", "0"}};
  EXPECT_THAT(read_launch(lookup(variables)).error().cure(), HasSubstr("CCOM_RANK=$PMIX_RANK"));
  const std::pair<const char*, Variables> launchers[] = {
      {"Neuron", {{"NEURON_PJRT_PROCESS_INDEX", "0"}, {"NEURON_PJRT_WORLD_SIZE", "1"}}},
      {"SageMaker", {{"SM_HOSTS", R"(["algo-1"])"}, {"SM_CURRENT_HOST", "algo-1"}}},
      {"Kubernetes", {{"JOB_COMPLETION_INDEX", "0"}, {"CCOM_NRANKS", "1"}}},
      {"Kubeflow Trainer", {{"PET_NODE_RANK", "0"}, {"PET_NNODES", "1"}}},
      {"Slurm", {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}, {"SLURM_STEP_ID", "0"}}},
      {"PMI", {{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}},
      {"Open MPI", {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}},
      {"torchrun", {{"RANK", "0"}, {"WORLD_SIZE", "1"}}},
      {"ccom", {{"CCOM_RANK", "0"}, {"CCOM_NRANKS", "1"}}}};
  for (const auto& [name, own] : launchers) {
    variables.insert(own.begin(), own.end());
    EXPECT_EQ(read_launch(lookup(variables))->launcher, name);
  }
}

TEST(Launch, IsInvalidUsageWithoutALauncher) {
  EXPECT_EQ(read_launch(lookup({})).error().code(), Code::InvalidUsage);
  const Variables shell_in_an_allocation{{"SLURM_NTASKS", "8"}, {"SLURM_JOB_ID", "17"}};
  EXPECT_EQ(read_launch(lookup(shell_in_an_allocation)).error().code(), Code::InvalidUsage);
  // The step of a salloc's shell has a reserved id, a batch script none.
  Variables no_task{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_JOB_ID", "17"}};
  EXPECT_EQ(read_launch(lookup(no_task)).error().code(), Code::InvalidUsage);
  EXPECT_THAT(read_launch(lookup(no_task)).error().message(), HasSubstr("batch script"));
  EXPECT_THAT(read_launch(lookup(no_task)).error().cure(), HasSubstr("srun"));
  no_task["SLURM_STEP_ID"] = "4294967290";
  EXPECT_EQ(read_launch(lookup(no_task)).error().code(), Code::InvalidUsage);
  const Variables pod_of_a_job_of_others{{"JOB_COMPLETION_INDEX", "2"}};
  EXPECT_EQ(read_launch(lookup(pod_of_a_job_of_others)).error().code(), Code::InvalidUsage);
  const Variables agent_of_an_elastic_job{{"PET_NNODES", "1:4"}, {"PET_NPROC_PER_NODE", "8"}};
  EXPECT_EQ(read_launch(lookup(agent_of_an_elastic_job)).error().code(), Code::InvalidUsage);
}

TEST(Launch, NamesTheVariablesThatAreWrong) {
  struct Case {
    Variables variables;
    std::vector<std::string> names;
  };
  const Case cases[] = {
      {{{"CCOM_RANK", "3"}}, {"CCOM_RANK is set", "CCOM_NRANKS is not"}},
      {{{"WORLD_SIZE", "3"}}, {"WORLD_SIZE is set", "RANK is not"}},
      {{{"SLURM_PROCID", "3"}, {"SLURM_STEP_ID", "0"}}, {"SLURM_PROCID is set", "SLURM_NTASKS is not"}},
      {{{"SLURM_PROCID", "3"},
        {"SLURM_NTASKS", "8"},
        {"SLURM_STEP_ID", "0"},
        {"SLURM_LOCALID", "3"},
        {"SLURM_NODEID", "1"},
        {"SLURM_STEP_TASKS_PER_NODE", "6,2"}},
       {"SLURM_LOCALID=3", "SLURM_STEP_TASKS_PER_NODE=2"}},
      {{{"CCOM_RANK", "2"}, {"CCOM_NRANKS", "4"}, {"CCOM_LOCAL_RANK", "2"}, {"CCOM_LOCAL_NRANKS", "2"}},
       {"CCOM_LOCAL_RANK=2", "CCOM_LOCAL_NRANKS=2"}},
      {{{"CCOM_RANK", "3"}, {"RANK", "0"}, {"WORLD_SIZE", "1"}}, {"CCOM_NRANKS is not"}},
      {{{"RANK", "4"}, {"WORLD_SIZE", "4"}}, {"RANK=4", "WORLD_SIZE=4"}},
      {{{"RANK", "-1"}, {"WORLD_SIZE", "4"}}, {"RANK=-1"}},
      {{{"RANK", "1x"}, {"WORLD_SIZE", "4"}}, {"RANK=1x"}},
      {{{"PMI_RANK", "0"}, {"PMI_SIZE", "0"}}, {"PMI_SIZE=0"}},
      {{{"RANK", "0"}, {"WORLD_SIZE", "99999999999"}}, {"WORLD_SIZE=99999999999"}},
      {{{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "2"}},
       {"LOCAL_RANK=2", "LOCAL_WORLD_SIZE=2"}},
      {{{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"LOCAL_WORLD_SIZE", "8"}}, {"LOCAL_WORLD_SIZE=8", "WORLD_SIZE=4"}},
  };
  for (const Case& one : cases) {
    const Status failure = error_of(read_launch(lookup(one.variables)));
    EXPECT_EQ(failure.code(), Code::ConfigError);
    for (const std::string& name : one.names) EXPECT_THAT(failure.message(), HasSubstr(name));
  }
}

TEST(LaunchRendezvous, PrefersTheUrlThenNeuronThenTorchrun) {
  Variables variables{{"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29500"}};
  EXPECT_EQ(url_of(variables), "tcp://node0:22500");
  variables["NEURON_RT_ROOT_COMM_ID"] = "10.0.0.1:62182";
  EXPECT_EQ(url_of(variables), "tcp://10.0.0.1:62182");
  variables["CCOM_URL"] = "file:///shared/id";
  EXPECT_EQ(url_of(variables), "file:///shared/id");
}

TEST(LaunchRendezvous, NeverUsesThePortOfTorchsStore) {
  for (int port = 1; port <= 65535; ++port) {
    const uint16_t chosen = rendezvous_port(static_cast<uint16_t>(port), 0);
    ASSERT_NE(chosen, port);
    ASSERT_TRUE(chosen >= 21000 && chosen < 25000) << chosen;
  }
  EXPECT_NE(rendezvous_port(29500, 0), rendezvous_port(29500, 1));
  EXPECT_EQ(url_of({{"MASTER_ADDR", "fd00::1"}, {"MASTER_PORT", "29500"}}), "tcp://[fd00::1]:22500");
}

TEST(LaunchRendezvous, StaysWithinTheRangeOfPorts) {
  for (int port = 1; port <= 65535; ++port) {
    const uint16_t chosen = rendezvous_port(static_cast<uint16_t>(port), 3, {29000, 29999});
    ASSERT_NE(chosen, port);
    ASSERT_TRUE(chosen >= 29000 && chosen <= 29999) << chosen;
  }
  EXPECT_EQ(url_of({{"MASTER_ADDR", "a"}, {"MASTER_PORT", "29500"}, {"CCOM_PORT_RANGE", "4000-4999"}}), "tcp://a:4500");
  EXPECT_EQ(
      read_launch_rendezvous(lookup({{"MASTER_ADDR", "a"}, {"MASTER_PORT", "29500"}, {"CCOM_PORT_RANGE", "4000"}}), 1)
          .error()
          .code(),
      Code::ConfigError);
}

TEST(LaunchRendezvous, TellsRestartsApart) {
  Variables variables{{"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29500"}, {"TORCHELASTIC_RUN_ID", "job"}};
  variables["TORCHELASTIC_RESTART_COUNT"] = "0";
  const auto first = read_launch_rendezvous(lookup(variables), 1000);
  variables["TORCHELASTIC_RESTART_COUNT"] = "1";
  const auto second = read_launch_rendezvous(lookup(variables), 1000);
  EXPECT_NE(first->generation, second->generation);
  EXPECT_NE(first->url, second->url);
  variables["TORCHELASTIC_RUN_ID"] = "another";
  EXPECT_NE(read_launch_rendezvous(lookup(variables), 1000)->generation, second->generation);
}

TEST(LaunchRendezvous, UsesAPrivateFolderPerJobOnOneHost) {
  const Variables jobs[] = {
      {{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}, {"PMIX_NAMESPACE", "prterun-n7-412@1"}},
      {{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}, {"OMPI_MCA_ess_base_jobid", "1234"}},
      {{"OMPI_COMM_WORLD_SIZE", "4"},
       {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
       {"OMPI_MCA_orte_hnp_uri", "99.0;tcp://10.0.0.1:5"}},
      {{"PMI_SIZE", "4"}, {"MPI_LOCALNRANKS", "4"}, {"PMI_PORT", "n7:4242"}},
      {{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_NODES", "1"}, {"SLURM_JOB_ID", "17"}, {"SLURM_STEP_ID", "0"}},
      {{"SLURM_PROCID", "0"}, {"SLURM_NNODES", "1"}, {"SLURM_JOB_ID", "17"}, {"SLURM_STEP_ID", "1"}},
      {{"SLURM_PROCID", "0"},
       {"SLURM_NNODES", "1"},
       {"SLURM_JOB_ID", "17"},
       {"SLURM_STEP_ID", "1"},
       {"SLURM_RESTART_COUNT", "1"}},
  };
  std::vector<std::string> urls;
  for (const Variables& job : jobs) {
    const auto found = value_of(read_launch_rendezvous(lookup(job), 1000));
    EXPECT_THAT(found.url, MatchesRegex("file:///tmp/ccom-1000-[0-9a-f]+/id"));
    EXPECT_EQ("file://" + found.private_folder + "/id", found.url);
    EXPECT_THAT(urls, Not(::testing::Contains(found.url)));
    urls.push_back(found.url);
  }
  const Variables hydra{{"PMI_SIZE", "4"}, {"MPI_LOCALNRANKS", "4"}, {"PMI_FD", "6"}};
  const auto of_first = read_launch_rendezvous(lookup(hydra), 1000, [](int fd) { return fd == 6 ? 412 : 0; });
  const auto of_second = read_launch_rendezvous(lookup(hydra), 1000, [](int) { return 413; });
  EXPECT_THAT(of_first->url, MatchesRegex("file:///tmp/ccom-1000-[0-9a-f]+/id"));
  EXPECT_NE(of_first->url, of_second->url);
  EXPECT_FALSE(read_launch_rendezvous(lookup(hydra), 1000, [](int) { return 0; }));
  Variables elsewhere = jobs[0];
  elsewhere["TMPDIR"] = "/scratch";
  EXPECT_THAT(url_of(elsewhere), HasSubstr("file:///scratch/ccom-1000-"));
}

TEST(LaunchRendezvous, DoesNotGuessForSeveralHosts) {
  const Variables jobs[] = {
      {},
      {{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}, {"PMIX_NAMESPACE", "x"}},
      {{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_NODES", "2"}, {"SLURM_JOB_ID", "17"}, {"SLURM_STEP_ID", "0"}},
      {{"SLURM_PROCID", "0"},
       {"SLURM_JOB_ID", "17"},
       {"SLURM_STEP_ID", "0"},
       {"SLURM_STEP_NODELIST", "a,b"},
       {"SLURM_DISTRIBUTION", "arbitrary"}},
      {{"SLURM_PROCID", "0"},
       {"SLURM_JOB_ID", "17"},
       {"SLURM_STEP_ID", "0"},
       {"SLURM_STEP_NODELIST", "a,b"},
       {"SLURM_HET_SIZE", "2"}},
      // A shell inside an allocation.
      {{"SLURM_JOB_ID", "17"}, {"SLURM_JOB_NODELIST", "a,b"}},
      {{"PMI_SIZE", "4"}, {"PMI_PORT", "n7:4242"}},
  };
  for (const Variables& job : jobs) {
    const Status failure = error_of(read_launch_rendezvous(lookup(job), 1000));
    EXPECT_EQ(failure.code(), Code::ConfigError);
    EXPECT_THAT(failure.cure(), AllOf(HasSubstr("CCOM_URL"), HasSubstr("CCOM_SECRET_FILE")));
  }
}

TEST(LaunchRendezvous, NamesTheVariablesThatAreWrong) {
  EXPECT_THAT(url_of({{"MASTER_ADDR", "n"}}), HasSubstr("MASTER_PORT"));
  EXPECT_THAT(url_of({{"MASTER_ADDR", "n"}, {"MASTER_PORT", "70000"}}), HasSubstr("MASTER_PORT=70000"));
  EXPECT_THAT(url_of({{"MASTER_ADDR", "n"}, {"MASTER_PORT", "1"}, {"TORCHELASTIC_RESTART_COUNT", "x"}}),
              HasSubstr("TORCHELASTIC_RESTART_COUNT=x"));
}

}  // namespace
}  // namespace ccom
