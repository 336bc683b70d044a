// SPDX-License-Identifier: Apache-2.0
//
// Launchers of several hosts: ranks from the numbers of hosts, rendezvous addresses from lists of them, and interfaces
// from the variables of other libraries.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bootstrap/interface_filter.h"
#include "bootstrap/launch_environment.h"
#include "launch_variables.h"
#include "tests/harness/results.h"

namespace ccom {
namespace {

using namespace ccom::testing;
using ::testing::HasSubstr;

// "3 of 8, 1 of 2", or the error.
std::string place_of(const Variables& variables) {
  const auto launch = read_launch(lookup(variables));
  if (!launch) return "error: " + launch.error().message();
  return std::to_string(launch->rank) + " of " + std::to_string(launch->nranks) + ", " +
         std::to_string(launch->local_rank) + " of " + std::to_string(launch->local_nranks);
}

TEST(LaunchHosts, CountRanksFromHosts) {
  EXPECT_EQ(place_of({{"PET_NODE_RANK", "1"}, {"PET_NNODES", "4"}, {"PET_NPROC_PER_NODE", "1"}}), "1 of 4, 0 of 1");
  EXPECT_EQ(place_of({{"PET_NODE_RANK", "1"}, {"PET_NNODES", "4"}, {"PET_NPROC_PER_NODE", "auto"}}), "1 of 4, 0 of 1");
  EXPECT_EQ(
      place_of({{"PET_NODE_RANK", "1"}, {"PET_NNODES", "4"}, {"PET_NPROC_PER_NODE", "8"}, {"CCOM_LOCAL_RANK", "3"}}),
      "11 of 32, 3 of 8");
  EXPECT_EQ(place_of({{"JOB_COMPLETION_INDEX", "3"}, {"CCOM_NRANKS", "4"}}), "3 of 4, 0 of 1");
  EXPECT_EQ(place_of({{"JOB_COMPLETION_INDEX", "1"},
                      {"CCOM_NRANKS", "64"},
                      {"CCOM_LOCAL_NRANKS", "32"},
                      {"CCOM_LOCAL_RANK", "31"}}),
            "63 of 64, 31 of 32");
  EXPECT_EQ(place_of({{"SM_HOSTS", R"(["algo-1", "algo-2"])"}, {"SM_CURRENT_HOST", "algo-2"}}), "1 of 2, 0 of 1");
  EXPECT_EQ(place_of({{"SM_HOSTS", R"(["algo-1","algo-2"])"},
                      {"SM_CURRENT_HOST", "algo-2"},
                      {"CCOM_LOCAL_NRANKS", "2"},
                      {"CCOM_LOCAL_RANK", "1"}}),
            "3 of 4, 1 of 2");
}

TEST(LaunchHosts, NameTheVariablesThatAreWrong) {
  EXPECT_THAT(place_of({{"PET_NODE_RANK", "1"}, {"PET_NNODES", "4"}, {"PET_NPROC_PER_NODE", "8"}}),
              HasSubstr("PET_NPROC_PER_NODE=8, but CCOM_LOCAL_RANK"));
  EXPECT_THAT(place_of({{"PET_NODE_RANK", "4"}, {"PET_NNODES", "4"}}), HasSubstr("PET_NODE_RANK=4"));
  EXPECT_THAT(place_of({{"PET_NODE_RANK", "0"}, {"PET_NNODES", "1:4"}}), HasSubstr("PET_NNODES=1:4"));
  EXPECT_THAT(place_of({{"JOB_COMPLETION_INDEX", "4"}, {"CCOM_NRANKS", "4"}}), HasSubstr("JOB_COMPLETION_INDEX=4"));
  EXPECT_THAT(
      place_of(
          {{"JOB_COMPLETION_INDEX", "0"}, {"CCOM_NRANKS", "4"}, {"CCOM_LOCAL_NRANKS", "3"}, {"CCOM_LOCAL_RANK", "0"}}),
      HasSubstr("CCOM_LOCAL_NRANKS=3 is inconsistent with CCOM_NRANKS=4"));
  EXPECT_THAT(
      place_of(
          {{"JOB_COMPLETION_INDEX", "0"}, {"CCOM_NRANKS", "4"}, {"CCOM_LOCAL_NRANKS", "2"}, {"CCOM_LOCAL_RANK", "2"}}),
      HasSubstr("CCOM_LOCAL_RANK=2 is inconsistent with CCOM_LOCAL_NRANKS=2"));
  EXPECT_THAT(place_of({{"SM_HOSTS", "algo-1,algo-2"}, {"SM_CURRENT_HOST", "algo-2"}}), HasSubstr("SM_HOSTS=algo-1"));
  EXPECT_THAT(place_of({{"SM_HOSTS", "[1]"}, {"SM_CURRENT_HOST", "algo-2"}}), HasSubstr("SM_HOSTS=[1]"));
  EXPECT_THAT(place_of({{"SM_HOSTS", R"(["algo-1"])"}, {"SM_CURRENT_HOST", "algo-2"}}),
              HasSubstr("SM_CURRENT_HOST=algo-2 is not in"));
}

Variables srun(const char* step, const char* nodes) {
  return {{"SLURM_PROCID", "0"},          {"SLURM_NTASKS", "8"},   {"SLURM_STEP_NUM_NODES", "4"},
          {"SLURM_JOB_ID", "17"},         {"SLURM_STEP_ID", step}, {"SLURM_STEP_NODELIST", nodes},
          {"SLURM_JOB_NODELIST", "other"}};
}

TEST(LaunchHosts, MeetAtTheFirstHostOfSlurmsStep) {
  const std::string url = url_of(srun("0", "node[03-08,11],login1"));
  EXPECT_THAT(url, ::testing::MatchesRegex("tcp://node03:2[12][0-9][0-9][0-9]"));
  EXPECT_EQ(url, url_of(srun("0", "node[03-08,11],login1"))) << "ranks must agree";
  EXPECT_NE(url, url_of(srun("1", "node[03-08,11],login1"))) << "steps that share a host must not meet";
  Variables requeued = srun("0", "node[03-08,11],login1");
  requeued["SLURM_RESTART_COUNT"] = "1";
  EXPECT_NE(read_launch_rendezvous(lookup(requeued), 1000)->generation,
            read_launch_rendezvous(lookup(srun("0", "node[03-08,11],login1")), 1000)->generation);
}

TEST(LaunchHosts, MeetAtTheFirstHostOfTheJobUnderMpirun) {
  Variables job = srun("0", "proxies");
  job.merge(Variables{{"OMPI_COMM_WORLD_RANK", "0"},
                      {"OMPI_COMM_WORLD_SIZE", "8"},
                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                      {"PMIX_NAMESPACE", "1"}});
  const std::string url = url_of(job);
  EXPECT_THAT(url, HasSubstr("tcp://other:"));
  job["SLURM_STEP_NUM_NODES"] = "1";
  EXPECT_EQ(url_of(job), url) << "srun may have started mpirun's daemon on one other node alone";
  job["PMIX_NAMESPACE"] = "2";
  EXPECT_NE(url_of(job), url);
}

TEST(LaunchHosts, MeetAtTheFirstHostOfKubeflowAndSageMaker) {
  EXPECT_EQ(url_of({{"PET_MASTER_ADDR", "trainer-node-0-0.trainer"}, {"PET_MASTER_PORT", "29400"}}),
            "tcp://trainer-node-0-0.trainer:22400");
  EXPECT_THAT(url_of({{"PET_MASTER_ADDR", "a"}}), HasSubstr("PET_MASTER_PORT"));
  EXPECT_EQ(url_of({{"SM_HOSTS", R"(["algo-1","algo-2"])"}}), "tcp://algo-1:21000");
}

TEST(LaunchHosts, TellMpirunsUsersWhatToPassOn) {
  const Variables job{{"OMPI_COMM_WORLD_RANK", "0"},
                      {"OMPI_COMM_WORLD_SIZE", "8"},
                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                      {"PMIX_NAMESPACE", "1"}};
  EXPECT_THAT(read_launch_rendezvous(lookup(job), 1000).error().cure(),
              HasSubstr("mpirun -x CCOM_SECRET_FILE -x CCOM_URL="));
}

TEST(NodeList, GivesItsFirstHost) {
  const std::pair<const char*, const char*> cases[] = {
      {"node1", "node1"},
      {"node1,node2", "node1"},
      {"node[1-4,7]", "node1"},
      {"node[007,1-4]", "node007"},
      {"node[010-044].cluster,x", "node010.cluster"},
      {"rack[0-1]node[3-5],other[1-2]", "rack0node3"},
      {"ip-10-0-0-[12-15]", "ip-10-0-0-12"},
  };
  for (const auto& [list, first] : cases) {
    const auto node = value_of(first_node("LIST", list));
    EXPECT_EQ(node, first);
  }
  for (const char* list : {"", ",a", "node[", "node[1", "node]1", "node[]", "node[a-b]", "node[-3]"}) {
    const auto node = first_node("LIST", list);
    ASSERT_FALSE(node) << list << " gives " << *node;
    EXPECT_EQ(node.error().code(), Code::ConfigError);
    EXPECT_THAT(node.error().message(), HasSubstr("LIST="));
  }
}

const std::vector<Interface> kInterfaces = {{"lo", "127.0.0.1", false, true},
                                            {"eth0", "10.0.0.7", false, false},
                                            {"eth0", "fd00::7", true, false},
                                            {"eth1", "10.1.0.7", false, false},
                                            {"docker0", "172.17.0.1", false, false}};

// "eth0 (NCCL_SOCKET_IFNAME)", or the error.
std::string filter_of(const Variables& variables) {
  const auto filter = read_interface_filter(lookup(variables), kInterfaces);
  return filter ? filter->text + " (" + filter->origin + ")" : "error: " + filter.error().message();
}

TEST(InterfaceFilter, TakesTheFirstVariableThatIsSet) {
  Variables variables;
  EXPECT_EQ(filter_of(variables), " ()");
  variables["SM_NETWORK_INTERFACE_NAME"] = "eth0";
  EXPECT_EQ(filter_of(variables), "eth0 (SM_NETWORK_INTERFACE_NAME)");
  variables["GLOO_SOCKET_IFNAME"] = "eth1,eth0";
  EXPECT_EQ(filter_of(variables), "eth1,eth0 (GLOO_SOCKET_IFNAME)");
  variables["NCCL_SOCKET_IFNAME"] = "eth1";
  EXPECT_EQ(filter_of(variables), "eth1 (NCCL_SOCKET_IFNAME)");
  variables["CCOM_SOCKET_IFNAME"] = "nosuch0";  // its own errors come later
  EXPECT_EQ(filter_of(variables), "nosuch0 (CCOM_SOCKET_IFNAME)");
}

TEST(InterfaceFilter, UnderstandsNcclsGrammar) {
  EXPECT_EQ(filter_of({{"NCCL_SOCKET_IFNAME", "eth"}}), "eth0,eth1 (NCCL_SOCKET_IFNAME)");
  EXPECT_EQ(filter_of({{"NCCL_SOCKET_IFNAME", "=eth1,eth0"}}), "eth1,eth0 (NCCL_SOCKET_IFNAME)");
  EXPECT_EQ(filter_of({{"NCCL_SOCKET_IFNAME", "^docker,lo"}}), "^docker0,lo (NCCL_SOCKET_IFNAME)");
  EXPECT_EQ(filter_of({{"NCCL_SOCKET_IFNAME", "^=docker"}}), " (NCCL_SOCKET_IFNAME)");
  EXPECT_THAT(filter_of({{"NCCL_SOCKET_IFNAME", "=eth"}}), HasSubstr("error: NCCL_SOCKET_IFNAME==eth matches no"));
  EXPECT_THAT(filter_of({{"NCCL_SOCKET_IFNAME", "ib"}}), HasSubstr("lo, eth0, eth1, docker0"));
  EXPECT_THAT(filter_of({{"GLOO_SOCKET_IFNAME", "eth"}}), HasSubstr("error: GLOO_SOCKET_IFNAME=eth matches no"));
}

TEST(LaunchHosts, CountsSlurmsTasksOfANode) {
  const std::vector<std::string> lists = {"3,1", "4(x2),3", "1(x1000)"};
  const std::vector<std::vector<int>> tasks = {{3, 1}, {4, 4, 3}, {1, 1, 1}};
  for (size_t i = 0; i < lists.size(); ++i) {
    for (size_t node = 0; node < tasks[i].size(); ++node) {
      EXPECT_EQ(*tasks_of_node("LIST", lists[i], static_cast<int>(node)), tasks[i][node]) << lists[i] << " " << node;
    }
  }
  for (const char* list : {"", ",", "3,", "x", "3(x", "3(x2", "3(x2)4", "3(2)", "0", "3(x0)", "-1", "3;1"}) {
    const auto found = tasks_of_node("LIST", list, 1);
    ASSERT_FALSE(found) << list;
    EXPECT_THAT(found.error().message(), HasSubstr(std::string("LIST=") + list));
  }
}

}  // namespace
}  // namespace ccom
